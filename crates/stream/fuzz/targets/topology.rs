//! Descriptions of buses: whatever is accepted can be planned on.

#![no_main]

use hairspring_stream::plan::Topology;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(topology) = Topology::parse(text) {
        for device in topology.devices() {
            let place = topology.place(&device.name).expect("a device has a place");
            assert!(topology.path(place).is_some(), "a way to the memory");
            let _ = topology.available(device);
        }
        let _ = topology.capacity();
        let _ = topology.with_cards(2);
    }
});
