//! The verdict of a plan, and its reasons with cause and remedy.

use hairspring_machine::Nanos;
use hairspring_plan::{
    Direction, Fit, Fits, MemoryRoom, Plan, Request, Stall, Stream, Sustainable, Target, Topology, Written,
};
use hairspring_ring::{ByteRate, Bytes};

use super::{mb_per_s, named};

/// One card at 100 MB/s to disk0, on a computer with 64 GiB, without measurements.
fn request() -> Request {
    Request {
        direction: Direction::Record,
        streams: vec![Stream { card: "card0".to_owned(), rate: mb_per_s(100.0) }],
        targets: vec![target("disk0", None)],
        span: None,
        stall: Stall { worst: Nanos::from_millis(250), sync_interval: Nanos::from_secs(1) },
        stall_is_assumed: false,
        memory: Some(MemoryRoom { total: Bytes::gib(64), available: Bytes::gib(60) }),
        pointer_bits: 64,
        sustainable: Err("take a sheet".to_owned()),
        fit: None,
        also: Vec::new(),
        written: Written::Both,
    }
}

fn target(name: &str, free: Option<Bytes>) -> Target {
    Target { name: name.to_owned(), disks: vec![name.to_owned()], unknown: String::new(), file_system: None, free }
}

fn measured(rate_mb_per_s: f64) -> Result<Sustainable, String> {
    Ok(Sustainable { rate: mb_per_s(rate_mb_per_s), source: "the sheet".to_owned() })
}

/// Checks verdict and words of a reason.
#[track_caller]
fn check(request: &Request, topology: &Topology, verdict: Fits, words: &str) -> Plan {
    let plan = Plan::of(request, topology).expect("all devices exist");
    let reasons: Vec<&str> = plan.reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(plan.verdict, verdict, "{reasons:#?}");
    assert!(reasons.iter().any(|text| text.contains(words)), "{words} is not in {reasons:#?}");
    plan
}

/// A computer all of whose links are known and fast.
fn fast() -> Topology {
    Topology::parse(
        r#"{ "schema": "hairspring.topology/1", "name": "fast", "segments": [
        { "name": "slot", "below": "memory", "pcie": { "gt_per_s": 8, "lanes": 8, "payload_bytes": 256 } },
        { "name": "m2", "below": "memory", "pcie": { "gt_per_s": 8, "lanes": 4, "max_gt_per_s": 16, "payload_bytes": 256 } }
        ], "devices": [
        { "name": "card0", "kind": "card", "on": "slot", "numa_node": 0 },
        { "name": "disk0", "kind": "disk", "on": "m2", "numa_node": 1 },
        { "name": "disk1", "kind": "disk", "on": "m2", "write": "2GB/s" } ] }"#,
    )
    .expect("it makes sense")
}

#[test]
fn a_plan_without_measured_disks_is_unknown_and_says_what_to_measure() {
    let plan = check(&request(), &fast(), Fits::Unknown, "the rate that the disks sustain is not known: take a sheet");
    assert_eq!(plan.reasons[0].fits, Some(Fits::Unknown), "the worst first");
}

#[test]
fn what_was_measured_decides_with_its_margin() {
    for (rate, verdict, words) in [
        (200.0, Fits::WithMargin, "50 % of the 200.0 MB/s (190.7 MiB/s) that the sheet shows"),
        (102.0, Fits::Tight, "without the margin"),
        (99.0, Fits::No, "more than was reached"),
    ] {
        check(&Request { sustainable: measured(rate), ..request() }, &fast(), verdict, words);
    }
}

#[test]
fn a_bus_that_is_too_slow_is_named_with_what_gets_through() {
    let words = "pcix-2 (PCI bus of 32 bit at 66 MHz, half duplex) has to carry 400.0 MB/s (381.5 MiB/s) of at most 264.0 MB/s \
                 (251.8 MiB/s); the data cross it twice, and it is half duplex: it is full with 132.0 MB/s";
    let fast_disks = Request {
        streams: vec![Stream { card: "card0".to_owned(), rate: mb_per_s(200.0) }],
        sustainable: measured(10_000.0),
        ..request()
    };
    let plan = check(&fast_disks, &named("an006-shared-pcix"), Fits::No, words);
    assert!((plan.most.expect("known").bytes_per_s() - 132e6).abs() < 1e-3);
    // With the card elsewhere the hub remains. Its rate is unknown, but the measured disk used it.
    check(&fast_disks, &named("an006-own-pcix"), Fits::WithMargin, "the measured rate includes it");
}

#[test]
fn a_disk_that_states_its_rate_needs_no_sheet() {
    let to_it = |rate: f64| Request {
        streams: vec![Stream { card: "card0".to_owned(), rate: mb_per_s(rate) }],
        targets: vec![target("disk1", None)],
        ..request()
    };
    check(&to_it(1000.0), &fast(), Fits::WithMargin, "disk1 (stated: the rate at which it takes by itself)");
    check(&to_it(2100.0), &fast(), Fits::No, "disk1 (stated");
}

#[test]
fn the_room_on_the_disks_is_reckoned_for_the_span() {
    let for_a_second = |free: u64| Request {
        span: Some(Nanos::from_secs(1)),
        targets: vec![target("disk0", Some(Bytes(free)))],
        sustainable: measured(1000.0),
        ..request()
    };
    check(&for_a_second(99_000_000), &fast(), Fits::No, "lasts for 990 ms: free more");
    check(&for_a_second(101_000_000), &fast(), Fits::Tight, "lasts for 1.01 s");
    check(&for_a_second(200_000_000), &fast(), Fits::WithMargin, "1 s make 100.0 MB (95.37 MiB)");
}

#[test]
fn folders_of_one_file_system_share_its_room() {
    let folder =
        |name: &str, file_system| Target { file_system: Some(file_system), ..target(name, Some(Bytes(1_000_000_000))) };
    let lasts = |targets: Vec<Target>| {
        let targets = targets.into_iter().map(|target| Target { disks: vec!["disk0".to_owned()], ..target }).collect();
        Plan::of(&Request { targets, ..request() }, &fast()).expect("all exist").room_lasts
    };
    assert_eq!(lasts(vec![folder("a", 1)]), Some(Nanos::from_secs(10)));
    assert_eq!(lasts(vec![folder("a", 1), folder("b", 1)]), Some(Nanos::from_secs(10)));
    assert_eq!(lasts(vec![folder("a", 1), folder("b", 2)]), Some(Nanos::from_secs(20)));
    // Two on one, one on the other: the one with two is full first.
    assert_eq!(lasts(vec![folder("a", 1), folder("b", 1), folder("c", 2)]), Some(Nanos::from_secs(15)));
    assert_eq!(lasts(vec![folder("a", 1), Target { free: None, ..folder("b", 2) }]), None);
}

#[test]
fn buffers_that_do_not_fit_into_a_quarter_of_the_memory_are_cut_and_said_so() {
    let little = |total| Request {
        memory: Some(MemoryRoom { total, available: total }),
        sustainable: measured(1000.0),
        ..request()
    };
    let whole = check(&request(), &fast(), Fits::Unknown, "");
    assert_eq!((whole.notify(), whole.buffer()), (Bytes::mib(4), Bytes::mib(256)));
    let cut = check(&little(Bytes::mib(400)), &fast(), Fits::Tight, "to outlast 1.50 s takes buffers of 256 MiB, but");
    assert_eq!(cut.buffer(), Bytes::mib(64));
    assert!(cut.buffer_lasts() < whole.buffer_lasts());
    check(&little(Bytes::mib(40)), &fast(), Fits::No, "takes buffers of 256 MiB");
}

#[test]
fn several_cards_are_several_streams_with_a_buffer_each() {
    let (topology, names) = fast().with_cards(3).expect("they fit");
    assert_eq!(names, ["card0", "card1", "card2"]);
    let streams = names.into_iter().map(|card| Stream { card, rate: mb_per_s(100.0) }).collect();
    let three = Request { streams, sustainable: measured(1000.0), ..request() };
    let words = "the way of card1 to memory is left out, for its place is not known: put it somewhere with --what-if";
    let plan = check(&three, &topology, Fits::WithMargin, words);
    assert_eq!(plan.rate, mb_per_s(300.0));
    assert_eq!((plan.sizes.len(), plan.buffer()), (3, Bytes::mib(768)));
}

#[test]
fn a_stripe_says_what_it_risks_and_what_it_shares() {
    let targets = vec![target("disk0", None), target("disk1", None)];
    let striped = Request { targets, sustainable: measured(1000.0), ..request() };
    check(&striped, &fast(), Fits::WithMargin, "the failure of any one loses the recording, which is about 2 times");
    check(&striped, &fast(), Fits::WithMargin, "all 2 disks are behind m2 and share what it carries");
    let twice = Request { targets: vec![target("disk0", None), target("disk0", None)], ..striped };
    check(&twice, &fast(), Fits::WithMargin, "several folders are on one disk: striping over them gains nothing");
}

#[test]
fn a_link_below_its_best_and_memory_far_away_are_remarked() {
    let known = Request { sustainable: measured(1000.0), ..request() };
    check(&known, &fast(), Fits::WithMargin, "downtrained or idle, read it again under load");
    check(&known, &fast(), Fits::WithMargin, "card0 is near to memory node 0 and disk0 to node 1");
}

#[test]
fn playing_takes_the_same_way_back() {
    let play = Request { direction: Direction::Play, sustainable: measured(1000.0), ..request() };
    let plan = check(&play, &named("an006-shared-pci"), Fits::No, "100.0 MB/s (95.37 MiB/s) are to be read");
    let bus = super::load(&plan.loads, "pci");
    assert_eq!((bus.up, bus.down), (mb_per_s(100.0), mb_per_s(100.0)));
    assert_eq!(plan.room_lasts, None);
}

#[test]
fn a_fitted_disk_decides_the_block() {
    let half = Bytes::mib(1);
    let fit = Fit { full: mb_per_s(200.0), each: Nanos::from_millis(5), half };
    let plan = Plan::of(&Request { fit: Some(fit), ..request() }, &fast()).expect("all exist");
    assert_eq!(plan.notify(), Bytes::mib(32));
}

#[test]
fn rates_beyond_all_bounds_end_in_a_plan_that_says_no() {
    let streams = vec![Stream { card: "card0".to_owned(), rate: ByteRate::new(f64::MAX).expect("finite") }; 2];
    let absurd = Request { streams, span: Some(Nanos::new(i64::MAX)), sustainable: measured(1000.0), ..request() };
    check(&absurd, &fast(), Fits::No, "slot");
}

#[test]
fn a_plan_in_the_units_of_an006_has_no_other() {
    let an006 = Request { written: Written::An006, sustainable: measured(1000.0), ..request() };
    let plan = check(&an006, &fast(), Fits::WithMargin, "95.4 MB/s are to be written");
    assert!(plan.reasons.iter().all(|reason| !reason.text.contains("MiB")), "{:#?}", plan.reasons);
}
