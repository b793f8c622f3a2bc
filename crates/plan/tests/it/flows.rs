//! The loads of flows on shared segments.

use hairspring_plan::{BusDevice, Capacity, DeviceKind, Fits, Move, Place, Segment, SegmentKind, Topology};
use proptest::prelude::*;

use super::{flow, load, loads, mb_per_s, named};

/// The rate of one stream from the card to the disk that gets through, in MB/s, and the limiting segment.
#[track_caller]
fn check(topology: &Topology, limiting: &str, through_mb_per_s: f64) {
    let loads = loads(topology, &[flow("card0", "disk0", 100.0)]);
    let limit = loads.limiting().expect("something is known");
    assert_eq!(limit.name, limiting, "{}", topology.name);
    let through = 100.0 / limit.share().expect("known");
    assert!((through - through_mb_per_s).abs() < 1e-9, "{}: {through} MB/s", topology.name);
}

/// AN006: "as data has to be transferred twice across this bus segment the overall throughput is only half of the
/// maximum".
#[test]
fn a_bus_that_data_cross_twice_carries_half() {
    check(&named("an006-shared-pcix"), "pcix-2", 132.0);
    check(&named("an006-shared-pci"), "pci", 66.0);
}

/// AN006: "Simply changing the position of the card … will enhance the system throughput."
#[test]
fn a_card_on_a_bus_of_its_own_gets_all_of_it() {
    check(&named("an006-own-pcix"), "pcix-1", 264.0);
    check(&named("an006-own-bus"), "pci", 132.0);
}

#[test]
fn moving_the_card_makes_one_drawing_into_the_other() {
    let change: Move = "move card0 to pcix-1".parse().expect("a change");
    let moved = named("an006-shared-pcix").with(&change).expect("both exist");
    check(&moved, "pcix-1", 264.0);
    let flows = [flow("card0", "disk0", 200.0)];
    assert_eq!(loads(&moved, &flows), loads(&named("an006-own-pcix"), &flows));
}

/// AN006: "Even the interconnection between the two motherboard controllers is now only occupied in one direction".
#[test]
fn the_link_between_the_hubs_is_crossed_once_or_twice() {
    let between_hubs = |name: &str| {
        let loads = loads(&named(name), &[flow("card0", "disk0", 100.0)]);
        let hub = load(&loads, "hub");
        (hub.up, hub.down, hub.twice)
    };
    assert_eq!(between_hubs("an006-shared-pcix"), (mb_per_s(100.0), mb_per_s(100.0), true));
    assert_eq!(between_hubs("an006-own-pcix"), (mb_per_s(0.0), mb_per_s(100.0), false));
}

/// A topology with card and disk on one segment that states 100 MB/s.
fn shared_link(shared: bool) -> Topology {
    let mut topology = Topology::empty("link");
    let kind = SegmentKind::Stated { rate: mb_per_s(100.0), shared };
    let link = topology.add_segment(Segment { name: "link".to_owned(), below: None, kind }).expect("new");
    for (name, kind) in [("card0", DeviceKind::Card), ("disk0", DeviceKind::Disk)] {
        topology.add_device(device(name, kind, Place::On(link))).expect("new");
    }
    topology
}

fn device(name: &str, kind: DeviceKind, place: Place) -> BusDevice {
    let (name, detail) = (name.to_owned(), String::new());
    BusDevice { name, kind, place, takes: None, gives: None, free: None, detail, numa_node: None }
}

#[test]
fn directions_that_do_not_take_turns_do_not_add_up() {
    check(&shared_link(false), "link", 100.0);
    check(&shared_link(true), "link", 50.0);
}

#[test]
fn a_load_is_judged_with_the_margin() {
    let judged = |rate| loads(&shared_link(false), &[flow("card0", "memory", rate)]).fits();
    assert_eq!(judged(95.0), Fits::WithMargin);
    assert_eq!(judged(95.1), Fits::Tight);
    assert_eq!(judged(100.0), Fits::Tight);
    assert_eq!(judged(100.1), Fits::No);
}

#[test]
fn other_flows_take_their_part() {
    let topology = named("an006-own-pcix");
    let loads = loads(&topology, &[flow("card0", "disk0", 100.0), flow("net0", "disk0", 60.0)]);
    assert_eq!(load(&loads, "pcix-2").down, mb_per_s(160.0));
    assert_eq!(load(&loads, "hub").up, mb_per_s(60.0));
    assert_eq!(loads.limiting().map(|limit| limit.name.as_str()), Some("pcix-2"));
}

#[test]
fn what_a_device_does_by_itself_is_a_limit_too() {
    let mut topology = shared_link(false);
    let disk = BusDevice { takes: Some(mb_per_s(60.0)), ..device("slow", DeviceKind::Disk, Place::Memory) };
    topology.add_device(disk).expect("new");
    let loads = loads(&topology, &[flow("card0", "slow", 70.0)]);
    let limit = loads.limiting().expect("known");
    assert_eq!((limit.name.as_str(), limit.fits()), ("slow", Fits::No));
}

#[test]
fn what_is_not_known_is_not_enough_and_not_too_little() {
    let mut topology = shared_link(false);
    let kind = SegmentKind::Unknown("nobody says".to_owned());
    let dark = topology.add_segment(Segment { name: "dark".to_owned(), below: None, kind }).expect("new");
    topology.add_device(device("card1", DeviceKind::Card, Place::On(dark))).expect("new");
    let loads = loads(&topology, &[flow("card1", "disk0", 10.0)]);
    assert_eq!(load(&loads, "dark").share(), None);
    assert_eq!(loads.fits(), Fits::Unknown);
    assert_eq!(loads.limiting().map(|limit| limit.name.as_str()), Some("link"));
}

#[test]
fn an_old_bus_counts_both_directions_and_a_link_does_not() {
    for name in Topology::names() {
        for segment in named(name).segments() {
            if let Capacity::Known { shared, .. } = segment.capacity() {
                assert_eq!(shared, matches!(segment.kind, SegmentKind::Bus(_)), "{}", segment.name);
            }
        }
    }
}

proptest! {
    /// Against the definition: the upward load of a segment is the sum of what the devices below it send.
    #[test]
    fn a_segment_carries_what_the_devices_below_it_send_and_take(
        parents in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        places in prop::collection::vec(any::<prop::sample::Index>(), 2..6),
        ends in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_u32..1000), 0..8),
    ) {
        let mut topology = Topology::empty("random");
        for (number, parent) in parents.iter().enumerate() {
            let above = parent.index(number + 1);
            let below = above.checked_sub(1);
            let segment = Segment { name: format!("s{number}"), below, kind: SegmentKind::Inside };
            topology.add_segment(segment).expect("new");
        }
        for (number, place) in places.iter().enumerate() {
            let place = Place::On(place.index(parents.len()));
            topology.add_device(device(&format!("d{number}"), DeviceKind::Other, place)).expect("new");
        }
        let flows: Vec<_> = ends
            .iter()
            .map(|(from, to, rate)| {
                let name = |index: &prop::sample::Index| match index.index(places.len() + 1) {
                    0 => "memory".to_owned(),
                    number => format!("d{}", number - 1),
                };
                flow(&name(from), &name(to), f64::from(*rate))
            })
            .collect();
        let loads = loads(&topology, &flows);
        for (number, load) in loads.loads.iter().enumerate() {
            let is_below = |name: &str| {
                let path = topology.device(name).and_then(|device| topology.path(device.place));
                path.is_some_and(|path| path.contains(&number))
            };
            let sum = |end: fn(&hairspring_plan::Flow) -> &str| {
                flows.iter().filter(|flow| is_below(end(flow))).map(|flow| flow.rate.bytes_per_s()).sum::<f64>()
            };
            prop_assert_eq!(load.up.bytes_per_s(), sum(|flow| &flow.from));
            prop_assert_eq!(load.down.bytes_per_s(), sum(|flow| &flow.to));
        }
    }
}
