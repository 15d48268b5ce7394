//! Several domains, copied in the order of the file.
//!
//! The first ids of domains need not come in the order in which their first
//! packets do, since a domain that has little to say writes late.

use heaptap_trace::Format;

use crate::anonymise::assert_renamed;
use crate::damage::damage_and_repair;
use crate::program::{Place, assert_sound, dump, heaptap};
use crate::traces::workload;

#[test]
fn domains_keep_their_ids_and_events() {
    let place = Place::new();
    let output = place.path("copy.ctf");
    for domains in [2, 4, 9] {
        let input = place.file("par.ctf", &workload(Format::V3, domains, 60_000, 30));
        assert_eq!(heaptap("recode", &[&input, &output]).text(0), "");
        assert_sound(&output);
        let (mut before, mut after) = (dump(&input), dump(&output));
        before.sort();
        after.sort();
        assert!(before == after, "{domains} domains changed");
    }
}

#[test]
fn domains_are_anonymised_like_one() {
    let place = Place::new();
    let output = place.path("public.ctf");
    let input = place.file("par.ctf", &workload(Format::V3, 4, 10_000, 31));
    assert_eq!(heaptap("anonymise", &[&input, &output]).text(0), "");
    assert_sound(&output);
    assert_renamed(&input, &output);
}

#[test]
fn damage_to_several_domains_can_be_repaired() {
    damage_and_repair(&workload(Format::V3, 4, 8000, 32), 30..50);
}
