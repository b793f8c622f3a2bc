//! Everything that a station file can contain, and every kind of mistake in one with its place.

use proptest::prelude::*;

use super::*;
use crate::property::{Property, PropertyLimits};
use crate::station::LatencyAlarm;

const GOOD: &str = r#"
[source.tick]
from = "timer:1ms"
[source.trigger]
from = "udp:127.0.0.1:5000"

[device.board]
driver = "virtual:/dev/shm/board,safe=0x00000001"
[device.port]
driver = "parport:/dev/parport0"
lock = { file = "/dev/shm/port.lock", protocol = "fifo" }

[unit.shutter]
on = "trigger"
device = "port"
do = { pulse = { line = 3, width = "10us" } }
priority = 50
cpu = 1
late_after = "500us"

[unit.blink]
on = "tick"
device = "board"
do = { toggle = { line = 0 } }

[unit.also]
on = "tick"
device = "board"
do = "read"

[unit.next]
on = "tick"
do = { fire = "/dev/shm/next" }

[unit.set]
on = "tick"
device = "board"
do = { write = { mask = 0x0f, value = 5 } }
"#;

#[test]
fn a_station_is_read_as_it_is_written() {
    let station = read(GOOD).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = station.units.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(names, ["shutter", "blink", "also", "next", "set"], "in the order of the file");
    let shutter = &station.units[0];
    assert_eq!((shutter.priority, shutter.cpu, shutter.device), (Some(50), Some(Cpu(1)), Some(1)));
    assert_eq!(shutter.act, Act::Pulse(3, Nanos::from_micros(10)));
    assert_eq!(shutter.late_after, Some(Nanos::from_micros(500)));
    assert_eq!((station.units[1].priority, station.units[1].cpu), (None, None));
    assert_eq!(station.units[4].act, Act::Write(Lines(15), Lines(5)));
    let locks: Vec<_> = station.devices.iter().map(|device| device.lock.clone()).collect();
    assert_eq!(locks, [None, Some(("/dev/shm/port.lock".into(), Protocol::Fifo))]);
}

/// Puts a mistake into the good station and checks the place and the text of the error.
#[track_caller]
fn check(before: &str, after: &str, place: (usize, usize), hint: &str) {
    assert!(GOOD.contains(before), "{before}");
    let error = read(&GOOD.replacen(before, after, 1)).expect_err(after);
    assert!(error.what.contains(hint), "{after}: {error}");
    assert_eq!((error.line, error.column), place, "{after}: {error}");
    let shown = error.to_string();
    assert!(shown.ends_with('^') && shown.contains(&format!("line {}, column {}: ", place.0, place.1)), "{shown}");
}

#[test]
fn every_mistake_is_found_where_it_is() {
    check("timer:1ms", "timr:1ms", (3, 9), "'timr': there is no such source: choose timer");
    check("timer:1ms", "timer:1us", (3, 15), "at least");
    check("timer:1ms", r"ti\u006der:1us", (3, 8), "at least");
    check("safe=0x00000001", "safe=0x0000000x", (8, 48), "like 0x00000004");
    check("virtual:/dev/shm/board,safe=0x00000001", "virtal:/x", (8, 11), "there is no such driver");
    check("from = \"timer:1ms\"", "form = \"timer:1ms\"", (3, 1), "unknown field `form`");
    check("on = \"trigger\"", "on = \"triger\"", (14, 6), "there is no source \"triger\"; there are tick, trigger");
    check("device = \"port\"", "device = \"prt\"", (15, 10), "there is no device \"prt\"; there are board, port");
    check("udp:127.0.0.1:5000", "parport:/dev/parport0", (14, 6), "a claimed port cannot also be a source");
    check("device = \"port\"\n", "", (15, 6), "it needs a device");
    check("line = 3", "line = 32", (16, 25), "line 32: write 0 to 31");
    check("line = 3", "line = 12", (16, 6), "its outputs are lines 0 to 11");
    check("parport:/dev/parport0", "serial:/dev/ttyS0", (16, 6), "its outputs are lines 0 to 1");
    check("line = 3", "line = -3", (16, 25), "invalid value");
    check("\"10us\"", "\"10\"", (16, 36), "unit");
    check("\"10us\"", "\"-10us\"", (16, 36), "negative");
    check("pulse =", "puls =", (16, 8), "unknown variant");
    check("priority = 50", "priority = 0", (17, 12), "write 1 to 99");
    check("priority = 50", "priority = \"high\"", (17, 12), "invalid type");
    check("cpu = 1", "cpu = 1\ncpu = 0", (19, 1), "duplicate key");
    check("\"fifo\"", "\"lifo\"", (11, 50), "none, fifo or inherit");
    check("\"500us\"", "500", (19, 14), "invalid type");
    check("[unit.blink]", "[unit.blink", (21, 12), "");
    check("on = \"tick\"", "on = \"trigger\"", (22, 6), "only one unit can follow");
    check(
        "safe=0x00000001\"",
        "safe=0x00000001\"\nlock = { file = \"/x\" }",
        (9, 8),
        "a virtual board has its own lock",
    );
    check("parport:/dev/parport0", "pci:0000:00:04.0,out=0x8", (11, 8), "only one process can use");
}

#[test]
fn what_is_missing_is_said_at_the_end() {
    for text in ["", "[source.tick]\nfrom = \"timer:1ms\"\n"] {
        let error = read(text).expect_err("no unit");
        assert!(error.what.contains("write [unit.NAME]"), "{error}");
    }
    let many: String = (0..65).map(|n| format!("[unit.u{n}]\non = \"tick\"\ndo = {{ fire = \"/x\" }}\n")).collect();
    let error = read(&format!("[source.tick]\nfrom = \"timer:1ms\"\n{many}")).expect_err("too many");
    assert!(error.what.contains("at most 64"), "{error}");
    let unfinished = read("[unit.x]\non = \"tick\"\n").expect_err("no action");
    assert!(unfinished.what.contains("missing field `do`"), "{unfinished}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(cut in 0..GOOD.len(), inserted in "[\\[\\]{}=\".,a-z0-9µ\n -]{0,12}") {
        let cut = (0..=cut).rev().find(|at| GOOD.is_char_boundary(*at)).unwrap_or(0);
        let text = format!("{}{inserted}{}", &GOOD[..cut], &GOOD[cut..]);
        if let Err(error) = read(&text) {
            let line = text.lines().nth(error.line - 1).unwrap_or_default();
            prop_assert_eq!(&error.text, line);
            prop_assert!(error.column <= line.chars().count() + 1);
        }
        drop(read(&GOOD[..cut]));
    }
}

#[test]
fn what_is_settable_and_published_is_read_with_its_limits() {
    let more = "settable = { enable = true, width = { least = \"5us\", most = \"1ms\" } }\nenable = false\n";
    let text = GOOD.replacen("late_after = \"500us\"\n", &format!("late_after = \"500us\"\n{more}"), 1);
    let publish = "[publish]\nprefix = \"LAB:SHUTTER:\"\nkeep = \"/var/lib/x\"\naccounts = [\"ann\"]\n";
    let station = read(&format!("{text}{publish}")).unwrap_or_else(|error| panic!("{error}"));
    let limits = |property, least, most| PropertyLimits { property, least, most };
    let shutter = &station.units[0];
    assert_eq!(shutter.settable, [limits(Property::Enable, 0, 1), limits(Property::Width, 5_000, 1_000_000)]);
    assert_eq!(shutter.property_values().0, [0, 500_000, 10_000, 0]);
    assert_eq!(station.publish.prefix.as_deref(), Some("LAB:SHUTTER:"));
    assert_eq!(station.publish.accounts, Some(vec!["ann".to_owned()]));
}

#[test]
fn latencies_that_are_alarms_are_read_and_what_makes_no_sense_is_refused() {
    let with = |alarm: &str| {
        read(&GOOD.replacen("late_after = \"500us\"\n", &format!("late_after = \"500us\"\nalarm = {alarm}\n"), 1))
    };
    let station = with("{ minor = \"20us\", major = \"100us\", hysteresis = \"2us\" }");
    let (minor, major) = (Some(Nanos::from_micros(20)), Some(Nanos::from_micros(100)));
    let read = station.unwrap_or_else(|error| panic!("{error}")).units[0].alarm;
    assert_eq!(read, Some(LatencyAlarm { minor, major, hysteresis: Nanos::from_micros(2) }));
    let one = with("{ major = \"100us\" }").unwrap_or_else(|error| panic!("{error}")).units[0].alarm;
    assert_eq!(one, Some(LatencyAlarm { minor: None, major, hysteresis: Nanos::ZERO }));
    for (alarm, hint) in [
        ("{ hysteresis = \"1us\" }", "an alarm needs a limit"),
        ("{ minor = \"20us\", major = \"20us\" }", "minor must be less than major"),
        ("{ major = \"20us\", hysteresis = \"20us\" }", "the hysteresis must be shorter"),
        ("{ loud = true }", "unknown field `loud`"),
    ] {
        let error = with(alarm).expect_err(alarm);
        assert!(error.what.contains(hint) && error.line == 20, "{alarm}: {error}");
    }
}

/// A property that the unit cannot have is an error at its place.
#[test]
fn what_cannot_be_settable_is_refused() {
    for (settable, hint) in [
        ("{ value = { least = 0, most = 1 } }", "the unit has no value to set"),
        (
            "{ width = { least = \"20us\", most = \"1ms\" } }",
            "the unit's own value 10000 is outside its limits 20000 to 1000000",
        ),
        ("{ width = { least = \"2ms\", most = \"1ms\" } }", "least is greater than most"),
        ("{ width = { least = \"5us\" } }", "missing field `most`"),
        ("{ colour = true }", "unknown field `colour`"),
    ] {
        let after = format!("late_after = \"500us\"\nsettable = {settable}\n");
        let error = read(&GOOD.replacen("late_after = \"500us\"\n", &after, 1)).expect_err(settable);
        assert!(error.what.contains(hint) && error.line == 20, "{settable}: {error}");
    }
    let error = read(&format!("{GOOD}[publish]\nprefix = \"two words\"\n")).expect_err("a space");
    assert!(error.what.contains("a prefix has 1 to 30"), "{error}");
}

#[test]
fn the_end_of_a_line_is_behind_its_last_character_whatever_ends_it() {
    for text in ["[unit.x]\non = 'tick\n", "[unit.x]\r\non = 'tick\r\n"] {
        let error = read(text).expect_err("the quote is open");
        assert_eq!((error.line, error.column, error.text.as_str()), (2, 11, "on = 'tick"), "{error}");
    }
}
