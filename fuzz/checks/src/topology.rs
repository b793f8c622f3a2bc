//! Descriptions of buses: an accepted one can be planned on. Flows, moves and speeds: an accepted one is printed as it
//! is read.

use hairspring_plan::{Flow, Place, Topology};

/// Checks what the module promises.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    let _ = text.parse::<Flow>();
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
}
