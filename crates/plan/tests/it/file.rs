//! Topology files: which are read, and which are refused at which place.

use hairspring_plan::{Capacity, Move, Topology};

/// A small topology with one line to be put in.
fn with(segments: &str, devices: &str) -> String {
    format!(
        "{{\n \"schema\": \"hairspring.topology/1\", \"name\": \"t\",\n \"segments\": [\n{segments}\n ],\n \
         \"devices\": [\n{devices}\n ]\n}}\n"
    )
}

/// Checks that a text is refused at this line, with these words.
#[track_caller]
fn refused(text: &str, line: usize, words: &str) {
    let error = Topology::parse(text).expect_err("it makes no sense");
    assert_eq!(error.at.map(|at| at.0), Some(line), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

const A: &str = "  { \"name\": \"a\", \"below\": \"memory\" }";

#[test]
fn the_built_in_ones_can_be_read_under_their_own_names() {
    assert!(Topology::names().count() >= 4);
    for name in Topology::names() {
        let topology = Topology::named(name).expect("it can be read");
        assert_eq!(topology.name, name);
        assert!(!topology.note.is_empty() && topology.device("card0").is_some() && topology.device("disk0").is_some());
    }
    let error = Topology::named("an007").expect_err("there is none");
    assert!(error.to_string().contains("an006-shared-pcix"), "{error}");
}

#[test]
fn what_is_no_json_is_refused_with_line_and_column() {
    refused("", 1, "EOF");
    refused("{\n  \"schema\": hello }", 2, "expected");
    refused(
        &with("  { \"name\": \"a\", \"below\": \"memory\", \"colour\": \"red\" }", ""),
        4,
        "unknown field `colour`",
    );
    refused(&with("  { \"name\": \"a\" }", ""), 4, "missing field `below`");
    refused(&with(A, "  { \"name\": 7 }"), 7, "invalid type");
    let error = Topology::parse("[").expect_err("no topology").to_string();
    assert!(!error.contains("at line"), "the place is said once: {error}");
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    refused(&with(A, "").replace("topology/1", "topology/9"), 2, "this version reads hairspring.topology/1");
    refused(
        &with("  { \"name\": \"b\", \"below\": \"c\" }", ""),
        4,
        "no segment 'c' comes before this one; there are: memory",
    );
    refused(&with("  { \"name\": \"b\", \"below\": \"b\" }", ""), 4, "no segment 'b' comes before this one");
    refused(&with(&format!("{A},\n{A}"), ""), 5, "'a' is there twice");
    refused(&with(A, "  { \"name\": \"a\", \"kind\": \"disk\", \"on\": \"a\" }"), 7, "'a' is there twice");
    refused(&with("  { \"name\": \"memory\", \"below\": \"memory\" }", ""), 4, "the root itself");
    refused(&with("  { \"name\": \"a b\", \"below\": \"memory\" }", ""), 4, "without spaces");
    refused(&with("  { \"name\": \"\", \"below\": \"memory\" }", ""), 4, "1 to 64 characters");
    let segment = |kind: &str| with(&format!("  {{ \"name\": \"a\", \"below\": \"memory\", {kind} }}"), "");
    refused(&segment("\"bus\": { \"width_bits\": 16, \"clock_mhz\": 8 }"), 4, "33, 66, 100 and 133 MHz");
    refused(&segment("\"pcie\": { \"gt_per_s\": 7, \"lanes\": 8 }"), 4, "64 gt_per_s");
    refused(&segment("\"pcie\": { \"gt_per_s\": 8, \"lanes\": 0 }"), 4, "1 to 32 lanes");
    refused(&segment("\"pcie\": { \"gt_per_s\": 8, \"lanes\": 8, \"max_lanes\": 4 }"), 4, "faster than");
    refused(&segment("\"pcie\": { \"gt_per_s\": 8, \"lanes\": 8, \"payload_bytes\": 200 }"), 4, "payload_bytes is 128");
    refused(&segment("\"rate\": \"100M/s\""), 4, "write for instance 320MB/s");
    refused(&segment("\"rate\": \"0MB/s\""), 4, "leave out what is not known");
    refused(&segment("\"duplex\": \"half\""), 4, "duplex belongs to a rate");
    refused(
        &segment("\"rate\": \"1GB/s\", \"bus\": { \"width_bits\": 32, \"clock_mhz\": 33 }"),
        4,
        "leave out the others",
    );
    let device = |text: &str| with(A, &format!("  {{ \"name\": \"d\", {text} }}"));
    refused(&device("\"kind\": \"toaster\", \"on\": \"a\""), 7, "card, disk, network, other");
    refused(&device("\"kind\": \"disk\", \"on\": \"z\""), 7, "there are: memory, a");
    refused(&device("\"kind\": \"disk\", \"on\": \"a\", \"free\": \"2T\""), 7, "MiB for 2²⁰");
}

#[test]
fn the_column_is_that_of_the_value() {
    let text = with(A, "  { \"name\": \"d\", \"kind\": \"disk\", \"on\": \"z\" }");
    let error = Topology::parse(&text).expect_err("no such segment");
    assert_eq!(error.at, Some((7, 40)));
    assert!(error.to_string().starts_with("line 7, column 40: "), "{error}");
}

#[test]
fn a_segment_that_states_nothing_is_unknown_and_not_fast() {
    let topology = Topology::parse(&with(A, "")).expect("it makes sense");
    assert!(matches!(topology.segments()[0].capacity(), Capacity::Unknown(_)));
}

#[test]
fn a_payload_that_is_not_stated_leaves_the_rate_between_two_bounds() {
    let link = "  { \"name\": \"a\", \"below\": \"memory\", \"pcie\": { \"gt_per_s\": 5.0, \"lanes\": 8 } }";
    let topology = Topology::parse(&with(link, "")).expect("it makes sense");
    let Capacity::Known { sure, most, shared: false, .. } = topology.segments()[0].capacity() else {
        panic!("it is known");
    };
    assert!((sure.bytes_per_s() / 4e9 - 128.0 / 152.0).abs() < 1e-9);
    assert!((most.bytes_per_s() / 4e9 - 4096.0 / 4120.0).abs() < 1e-9);
}

#[test]
fn changes_are_read_and_what_does_not_exist_is_refused_with_what_does() {
    let topology = Topology::named("an006-own-bus").expect("built in");
    for wrong in ["", "move card0", "move card0 to", "put card0 to pci", "move card0 to pci now"] {
        assert!(wrong.parse::<Move>().expect_err(wrong).to_string().contains("move card0 to SEGMENT"));
    }
    let refused = |text: &str| {
        let change = text.parse::<Move>().expect("a change");
        topology.with(&change).expect_err(text).to_string()
    };
    assert_eq!(refused("move card9 to pci"), "there is no device 'card9'; there are: card0, disk0");
    assert_eq!(refused("move card0 to isa"), "there is no segment 'isa'; there are: memory, hub, pci, pcix-1");
}
