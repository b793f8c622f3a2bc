//! Descriptions of buses: whatever is accepted can be planned on.

#![no_main]

use hairspring_plan::{Place, Topology};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(topology) = Topology::parse(text) {
        for device in topology.devices() {
            let is_known = device.place != Place::Unknown;
            assert_eq!(topology.path(device.place).is_some(), is_known, "a known place has a way to the memory");
            let _ = topology.available(device);
        }
        for segment in topology.segments() {
            let _ = segment.capacity();
        }
        let _ = topology.with_cards(2);
    }
});
