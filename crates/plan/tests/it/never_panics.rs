//! No text makes a parser panic, and every accepted text can be used for planning.

use hairspring_plan::topology::link::Speed;
use hairspring_plan::topology::system::payload_bytes;
use hairspring_plan::{Flow, Loads, MemoryRoom, Move, Topology};
use proptest::prelude::*;

/// A topology file that uses every member.
const WHOLE: &str = r#"{"schema":"hairspring.topology/1","name":"w","note":"n","segments":[
{"name":"a","below":"memory","pcie":{"gt_per_s":8.0,"lanes":8,"max_gt_per_s":16.0,"max_lanes":16,"payload_bytes":256}},
{"name":"b","below":"a","bus":{"width_bits":64,"clock_mhz":133}},{"name":"c","below":"b","rate":"1GB/s","duplex":"half"}],
"devices":[{"name":"card0","kind":"card","on":"c","detail":"x","numa_node":1},
{"name":"disk0","kind":"disk","on":"a","write":"1GB/s","read":"2GiB/s","free":"1TB"}]}"#;

proptest! {
    #[test]
    fn on_any_text(text in any::<String>()) {
        let _ = Topology::parse(&text);
        let _ = text.parse::<Move>();
        let _ = text.parse::<Flow>();
        let _ = text.parse::<Speed>();
        let _ = MemoryRoom::parse(&text);
    }

    #[test]
    fn on_texts_that_look_like_it(text in "[a-z0-9>:. ]{0,16}(MB/s|GT/s| to |kB\n|memory)[a-z0-9>:. ]{0,8}") {
        let _ = text.parse::<Move>();
        let _ = text.parse::<Flow>();
        let _ = text.parse::<Speed>();
        let _ = MemoryRoom::parse(&format!("MemTotal: {text}\nMemAvailable: {text}"));
    }

    /// A good file with one piece of it replaced: refused at a place in the file, or good for planning.
    #[test]
    fn on_a_file_that_was_changed_a_little(
        at in 0..WHOLE.len(),
        length in 0_usize..6,
        new in "[\\[\\]{}\",:0-9a-z./µ-]{0,4}",
    ) {
        let end = (at + length).min(WHOLE.len());
        let text = format!("{}{new}{}", &WHOLE[..at], &WHOLE[end..]);
        match Topology::parse(&text) {
            Ok(topology) => {
                let flows: Vec<Flow> = topology
                    .devices()
                    .iter()
                    .filter_map(|device| format!("{}>memory:1GB/s", device.name).parse().ok())
                    .collect();
                let loads = Loads::of(&topology, &flows);
                prop_assert!(loads.is_ok());
            }
            Err(error) => {
                let lines = text.lines().count();
                prop_assert!(error.at.is_some_and(|(line, column)| (1..=lines + 1).contains(&line) && column <= text.len()));
            }
        }
    }

    #[test]
    fn on_any_configuration_space(config in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(bytes) = payload_bytes(&config) {
            prop_assert!((128..=4096).contains(&bytes));
        }
    }
}

#[test]
fn the_whole_file_is_good() {
    Topology::parse(WHOLE).expect("every member is right");
}

#[test]
fn a_file_nested_deeper_than_any_stack_is_refused() {
    let deep = "[".repeat(1_000_000);
    assert!(Topology::parse(&deep).is_err());
}
