//! Prints every event of a sidecar.
fn main() {
    let file = std::env::args_os().nth(1).expect("a sidecar");
    let mut decoder = heaptap_probes::Decoder::new();
    decoder.feed(&std::fs::read(file).expect("a readable file"));
    while let Some(event) = decoder.next_event().expect("a sound file") {
        println!("{event:?}");
    }
}
