//! Valid and invalid descriptions, and their errors.

use proptest::prelude::*;

use hairspring_describe::Syntax;
use hairspring_machine::Nanos;

use super::*;
use crate::driver::comedi::ComediOptions;
use crate::driver::gpio::GpioOptions;
use crate::driver::parport::ParportOptions;
use crate::driver::pci::{BARS, PciOptions};
use crate::driver::serial::SerialOptions;
use crate::driver::virtual_board::{AccessTimes, BoardOptions};

#[test]
fn what_is_wrong_is_named_with_what_to_write() {
    for (text, part, under, hint) in [
        ("parallel:0", "parallel", "parallel", "choose virtual, parport, "),
        ("virtual", "virtual", "", "write a colon and the place, as in virtual:/dev/shm/board"),
        ("virtual:", "virtual:", "", "the place after the colon"),
        ("virtual:/x,fast", "fast", "fast", "read=, write= or init="),
        ("virtual:/x,read=1", "read=1", "1", "1.25us"),
        ("virtual:/x,read=2s", "read=2s", "2s", "100 ms"),
        ("virtual:/x,init=-1us", "init=-1us", "-1us", "100 ms"),
        ("virtual:/x,safe=all", "safe=all", "a", "0x00000004"),
        ("virtual:/x,safe=0x+1", "safe=0x+1", "+", "0x00000004"),
        ("virtual:/x,safe=0x1g", "safe=0x1g", "g", "0x00000004"),
        ("virtual:/x,lock=ceiling", "lock=ceiling", "ceiling", "none, fifo or inherit"),
        ("virtual:/x,speed=3", "speed=3", "speed", "read=, write= or init="),
        ("parport:/x,lock=fifo", "lock=fifo", "lock", "no lock here"),
        ("gpio:/dev/gpiochip0", "gpio:/dev/gpiochip0", "", "out=3+4"),
        ("gpio:/x,out=3+x", "out=3+x", "x", "at most 32 lines"),
        ("gpio:/x,out=3,in=4+3", "gpio:/x,out=3,in=4+3", "gpio:/x,out=3,in=4+3", "named twice"),
        ("serial:,safe=1", "serial:,safe=1", "", "serial:/dev/ttyS0"),
        ("comedi:/x,subdevice=a", "subdevice=a", "a", "from 0"),
        ("pci:0000:00:04.0,bar=0", "pci:0000:00:04.0,bar=0", "", "out=0x8"),
        ("pci:0000:00:04.0,bar=6", "bar=6", "6", "0 to 5"),
        ("pci:0000:00:04.0,out=0x6", "out=0x6", "0x6", "multiple of four"),
    ] {
        let error = text.parse::<DeviceDescription>().expect_err(text);
        assert_eq!((error.part().as_str(), &text[error.place()]), (part, under), "{text}: {error}");
        let said = error.to_string();
        assert!(said.starts_with(&format!("'{part}'")) && said.contains(hint) && said.ends_with('^'), "{said}");
    }
    let fesa: DeviceDescription = "virtual:/x,read=1.25us,write=1.25us,init=3.75us".parse().expect("a board");
    let AccessTimes { read, write, init } = AccessTimes::FESA;
    let [read, write, init] = [read, write, init].map(Some);
    let board = Driver::Virtual(BoardOptions { path: "/x".into(), read, write, init, lock: None });
    assert_eq!(fesa, DeviceDescription { driver: board, safe: None });
}

/// A board that was made with defaults could be opened with access times and a safe state: these were printed but had
/// no effect.
#[test]
fn what_is_written_of_a_board_is_in_force_or_refused_and_the_rest_is_as_it_was_made() {
    let timebase = Timebase::calibrate(hairspring_machine::Host).expect("a time base");
    let folder = tempfile::tempdir().expect("a folder");
    let described = |name: &str, settings: &str| -> DeviceDescription {
        format!("virtual:{}{settings}", folder.path().join(name).display()).parse().expect(settings)
    };
    let check = |name: &str, settings: &str, expected: Result<&str, &str>| {
        let opened = described(name, settings).open(&timebase);
        match expected {
            Ok(in_force) => {
                let shown = described(name, settings).in_force(&timebase).expect(settings);
                assert_eq!(shown, described(name, in_force), "{settings}");
                let safe = opened.map(|device| device.safe_state());
                assert_eq!(safe, Ok(shown.safe.unwrap_or_default()), "{settings}");
            }
            Err(made) => {
                let error = opened.map(drop).expect_err(settings).to_string();
                assert!(error.contains(&format!("made with {made}; ")) && error.contains("remove its file"), "{error}");
            }
        }
    };
    check("plain", "", Ok(""));
    check("plain", ",safe=0x0,write=0us,lock=inherit", Ok(",write=0ns,safe=0x00000000,lock=inherit"));
    check("plain", ",safe=0x100,write=1.25us,read=0us", Err("write=0ns,safe=0x00000000"));
    check("plain", ",lock=fifo", Err("lock=inherit"));
    check("made", ",safe=0x100,write=1.25us,lock=fifo", Ok(",write=1250ns,safe=0x00000100,lock=fifo"));
    check("made", "", Ok(",write=1250ns,safe=0x00000100,lock=fifo"));
    check("made", ",safe=0x100", Ok(",write=1250ns,safe=0x00000100,lock=fifo"));
    check("made", ",safe=0", Err("safe=0x00000100"));
    check("made", ",init=1us", Err("init=0ns"));
}

#[test]
fn every_example_is_a_device_of_its_driver() {
    for Syntax { kind: name, example, .. } in DRIVERS.syntaxes {
        let described: DeviceDescription = example.parse().expect(example);
        assert_eq!((described.driver.name(), described.to_string().starts_with(name)), (*name, true));
        assert_eq!(described.to_string().parse(), Ok(described), "{example}");
    }
}

#[test]
fn devices_that_are_not_there_are_told_with_what_to_do() {
    let timebase = Timebase::calibrate(hairspring_machine::Host).expect("a time base");
    for (text, remedy) in [
        ("parport:/dev/none", "parport_pc and ppdev"),
        ("parport:/dev/null", "parport_pc and ppdev"),
        ("gpio:/dev/none,out=0", "gpioinfo"),
        ("serial:/dev/none", "serial:/dev/ttyS0"),
        ("serial:/dev/null", "serial:/dev/ttyS0"),
        ("comedi:/dev/none", "comedi driver"),
        ("comedi:/dev/null", "comedi driver"),
        ("pci:ffff:ff:1f.7,out=0", "lspci"),
    ] {
        let described: DeviceDescription = text.parse().expect(text);
        let error = described.open(&timebase).map(drop).expect_err(text).to_string();
        assert!(error.starts_with("failed to ") && error.contains(remedy), "{text}: {error}");
        let error = described.open_board(&timebase).map(drop).expect_err(text).to_string();
        assert!(error.contains("only the lines of a virtual board"), "{text}: {error}");
    }
}

fn any_driver() -> impl Strategy<Value = Driver> {
    let path = || prop_oneof![Just("/dev/shm/a board"), Just("/dev/ttyS0")].prop_map(PathBuf::from);
    let line_numbers = || proptest::collection::btree_set(any::<u32>(), 1..=16);
    let word = || proptest::option::of((0..u32::MAX / 4).prop_map(|word| word * 4));
    prop_oneof![
        (path(), any::<[Option<u32>; 3]>(), 0..4_usize).prop_map(|(path, times, lock)| {
            let [read, write, init] = times.map(|span| span.map(|nanos| Nanos::new((nanos % 100_000_001).into())));
            Driver::Virtual(BoardOptions { path, read, write, init, lock: Protocol::ALL.get(lock).copied() })
        }),
        path().prop_map(|path| Driver::Parport(ParportOptions { path })),
        path().prop_map(|path| Driver::Serial(SerialOptions { path })),
        (path(), line_numbers(), 0..=16_usize).prop_map(|(path, lines, count)| {
            let mut outputs: Vec<u32> = lines.into_iter().collect();
            let inputs = outputs.split_off(count.min(outputs.len()));
            Driver::Gpio(GpioOptions { path, outputs, inputs })
        }),
        (path(), any::<u32>(), any::<u32>()).prop_map(|(path, subdevice, lines)| {
            Driver::Comedi(ComediOptions { path, subdevice, outputs: Lines(lines) })
        }),
        (0..BARS, word(), word()).prop_filter("a word", |(_, output, input)| output.or(*input).is_some()).prop_map(
            |(bar, output, input)| { Driver::Pci(PciOptions { card: "0000:00:04.0".to_owned(), bar, output, input }) }
        ),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(driver in any_driver(), safe in any::<Option<u32>>()) {
        let described = DeviceDescription { driver, safe: safe.map(Lines) };
        prop_assert_eq!(described.to_string().parse(), Ok(described));
    }

    #[test]
    fn no_text_makes_it_panic(text in "(virtual:|gpio:|pci:|comedi:|serial:|parport:)?[a-z/,=0-9.x+µ -]{0,40}") {
        if let Ok(described) = text.parse::<DeviceDescription>() {
            prop_assert_eq!(described.to_string().parse(), Ok(described));
        }
    }
}
