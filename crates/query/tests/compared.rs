//! The tree of a comparison says of the total what its table says.

mod made;

use heaptap_query::Engine;
use heaptap_trace::{EventKind, Source};
use serde_json::{Value, json};

/// The answer about two programs that allocate so many blocks.
fn compared(kind: &str, before: u64, after: u64) -> Value {
    let mut engine = Engine::default();
    for blocks in [before, after] {
        let program = |happen: &mut dyn FnMut(u64, EventKind<'_>)| {
            (0..blocks).for_each(|id| happen(id, made::block(id, Source::Minor)));
        };
        engine.add(made::archive(program));
    }
    let request = json!({"q": kind, "before": 0, "after": 1, "metric": "allocated"});
    serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap()
}

#[test]
fn the_root_of_the_tree_is_one_comparison() {
    // 1.4, 2.2 and 4.1 standard errors apart.
    for (after, is_certain) in [(1_064, false), (1_100, true), (1_200, true)] {
        let table = compared("diff", 1_000, after);
        assert_eq!(table["total"]["kind"] == "grew", is_certain, "{after}");
        let tree = compared("diff_tree", 1_000, after);
        assert_eq!(tree["cells"]["certain"][0], is_certain, "{after}");
    }
    let tree = compared("diff_tree", 1_000, 1_100);
    assert_eq!(tree["cells"]["certain"], json!([true, false]), "one of two cells");
}
