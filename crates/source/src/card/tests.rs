//! Cards as text: accepted and refused texts, the messages of the refusals, and that no text makes the parser panic.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn reads_back(text: &str) -> Card {
    let card = text.parse::<Card>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let again = card.to_string().parse::<Card>().unwrap_or_else(|error| panic!("{card}: {error}"));
    assert_eq!(again, card, "{card}");
    card
}

#[track_caller]
fn refuses(text: &str, part: &str, hint: &str) {
    let error = text.parse::<Card>().expect_err(text);
    let said = error.to_string();
    assert!(matches!(&error, CardError::Text(error) if error.part() == part), "{text}: {error:?}");
    assert!(said.contains(hint), "{text:?} said {said:?}, without {hint:?}");
}

#[test]
fn cards_are_read_and_print_as_they_are_read() {
    let card = reads_back("virtual:4ch,14bit,40MS/s");
    assert_eq!(card.layout(), Layout::analogue(4, 14).expect("exists"));
    assert_eq!(card.rate(), SampleRate::hz(40_000_000));
    assert_eq!(card.pattern(), Some(Pattern::Noise { seed: 0 }));
    assert_eq!(card.to_string(), "virtual:4ch,14bit,40MS/s,data=noise,fifo=64MiB");
    for text in [
        "virtual: 16ch , digital, 100 MS/s, data=counter, fifo=4KiB, jitter=50us, hiccup=2s+300ms, hiccup=1.5ms+7ns",
        "virtual:3ch,12bit,packed,44.100001kS/s,data=prbs:5,frames=1000000,bus=123.456MB/s,fifo=5B",
        "virtual:1ch,8bit,u,1S/s,seed=18446744073709551615",
        "unpaced:2ch,float,data=sine",
        "file:/tmp/a b.dat,16bit,1ch,1MS/s,data=noise,seed=3",
        "pipe:/tmp/p,16bit,1ch",
        "stdin:1ch,16bit,u",
        "tcp:[::1]:5000,1ch,16bit,frames=7",
        "tcp-listen:0.0.0.0:5000,1ch,16bit",
        "udp:239.1.2.3:5000,1ch,16bit,fifo=8MiB,seq=u32be@4,header=16,join=192.0.2.1",
        "udp:[::]:5000,1ch,16bit,from=[2001:db8::7]:5001",
        "udp:localhost:5000,1ch,16bit,seq=u8",
    ] {
        reads_back(text);
    }
}

#[test]
fn what_is_wrong_is_named_with_what_to_write_instead() {
    refuses("foo", "foo", "choose virtual, unpaced, file, pipe, stdin, tcp, tcp-listen, udp");
    refuses("", "", "there is no such card");
    refuses("virtual:14bit,40MS/s", "virtual:14bit,40MS/s", "4ch,14bit");
    refuses("virtual:4ch,40MS/s", "virtual:4ch,40MS/s", "the resolution is missing");
    refuses("virtual:4ch,14bit", "virtual:4ch,14bit", "40MS/s");
    refuses("virtual:4ch,14bit,40MHz", "40MHz", "40MS/s");
    refuses("virtual:4ch,14bit,0S/s", "0S/s", "more than 0");
    refuses("virtual:4096ch,32bit,1GS/s", "1GS/s", "100 GB/s or less");
    refuses("virtual:0ch,14bit,40MS/s", "0ch", "choose 1 to 4096");
    refuses("virtual:4ch,33bit,40MS/s", "33bit", "choose 1 to 32");
    refuses("virtual:4ch,14bit,packed,1MS/s", "14bit", "choose 1 to 12");
    refuses("virtual:4ch,4ch,14bit,1MS/s", "4ch", "given twice");
    refuses("virtual:4ch,u,packed,14bit,1MS/s", "packed", "given twice");
    refuses("virtual:4ch,2bit,digital,1MS/s", "2bit", "leave it out");
    refuses("virtual:4ch,14bit,1MS/s,seq=u8", "seq=u8", "hiccup=2s+300ms");
    refuses("virtual:4ch,14bit,1MS/s,fifo=4M", "fifo=4M", "MiB");
    refuses("virtual:4ch,14bit,1MS/s,fifo=0B", "fifo=0B", "fifo=64MiB");
    refuses("virtual:4ch,14bit,1MS/s,jitter=50", "jitter=50", "50us");
    refuses("virtual:4ch,14bit,1MS/s,jitter=2s", "jitter=2s", "1 s");
    refuses("virtual:4ch,14bit,1MS/s,hiccup=2s", "hiccup=2s", "hiccup=2s+300ms");
    refuses("virtual:4ch,14bit,1MS/s,hiccup=2s+0ms", "hiccup=2s+0ms", "more than 0 s");
    refuses("virtual:4ch,14bit,1MS/s,data=sine,seed=1", "seed=1", "data=noise or data=prbs");
    refuses("virtual:4ch,14bit,1MS/s,data=foo", "data=foo", "counter, prbs, sine");
    refuses("virtual:4ch,14bit,1MS/s,frames=0", "frames=0", "frames=1000");
    refuses("virtual:4ch,14bit,1MS/s,frames=18446744073709551615", "frames=18446744073709551615", "choose fewer");
    refuses("virtual:4ch,14bit,1MS/s,bus=0MB/s", "bus=0MB/s", "bus=500MB/s");
    refuses("unpaced:4ch,14bit,1MS/s", "1MS/s", "virtual:");
    refuses("file:,1ch,16bit", "file:,1ch,16bit", "file:/tmp/samples");
    refuses("file:x,1ch,16bit,jitter=1us", "jitter=1us", "of a file card");
    refuses("tcp:localhost,1ch,16bit", "localhost", "tcp:localhost:5000");
    refuses("udp:localhost:99999,1ch,16bit", "localhost:99999", "udp:localhost:5000");
    refuses("udp:localhost:9,1ch,16bit,seq=u24be", "seq=u24be", "seq=u32be");
    refuses("udp:localhost:9,1ch,16bit,seq=u32be@4,header=7", "header=7", "header=8");
    refuses("virtual:4ch,14bit,1MS/s,\u{1b}[31m", "\u{FFFD}[31m", "choose 4ch");
}

#[test]
fn errors_point_at_the_character() {
    for (text, under) in [
        ("virtual:4ch,14bit,1MS/s,hiccup=2s+300", "300"),
        ("virtual:4ch,14bit,1MS/s, fifo = 4M", "4M"),
        ("virtual:4ch,14bit", ""),
        ("udp:localhost:99999,1ch,16bit", "99999"),
        ("udp::9,1ch,16bit", ""),
        ("tpc:localhost:9", "tpc"),
        ("file:x,1ch,16bit,jitter=1us", "jitter"),
    ] {
        let error = text.parse::<Card>().expect_err(text);
        let CardError::Text(error) = &error else { panic!("{text}: {error}") };
        assert_eq!(&text[error.place()], under, "{error}");
        assert!(error.to_string().lines().nth(1).is_some_and(|line| line.trim_start() == text), "{error}");
    }
}

#[test]
fn only_cards_without_a_clock_can_be_made_to_wait() {
    let clocked = reads_back("virtual:4ch,14bit,40MS/s").accepts(OnOverrun::Block).expect_err("clocked").to_string();
    assert!(clocked.contains("choose stop, gap or overwrite"), "{clocked}");
    assert!(reads_back("udp:localhost:9,1ch,8bit").accepts(OnOverrun::Block).is_err());
    assert!(reads_back("unpaced:4ch,14bit").accepts(OnOverrun::Block).is_ok());
    assert!(reads_back("virtual:4ch,14bit,40MS/s").accepts(OnOverrun::Gap).is_ok());
}

#[test]
fn a_card_can_be_had_at_another_rate() {
    let card = reads_back("virtual:4ch,14bit,40MS/s,data=counter");
    let faster = card.at_rate(SampleRate::hz(41_234_567).expect("possible")).expect("clocked");
    assert_eq!(faster.rate(), SampleRate::hz(41_234_567));
    reads_back(&faster.to_string());
    assert!(card.at_rate(SampleRate::hz(1_000_000_000_000).expect("possible")).is_none());
    assert!(reads_back("unpaced:4ch,14bit").at_rate(SampleRate::hz(1).expect("possible")).is_none());
}

/// Pieces of card texts, and others.
const PIECES: [&str; 40] = [
    "virtual",
    "unpaced",
    "file",
    "udp",
    "tcp-listen",
    ":",
    ":",
    ",",
    ",",
    ",",
    "4ch",
    "14bit",
    "u",
    "packed",
    "float",
    "digital",
    "40MS/s",
    "1.5S/s",
    "data=",
    "noise",
    "prbs",
    "seed=",
    "7",
    "99999999999999999999",
    "frames=",
    "fifo=",
    "4KiB",
    "jitter=",
    "50us",
    "hiccup=",
    "1s+2ms",
    "+",
    "bus=",
    "1MB/s",
    "seq=",
    "u32be",
    "@4",
    "header=",
    "é",
    "-1",
];

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = text.parse::<Card>();
    }

    #[test]
    fn every_card_that_is_read_reads_back_and_describes_itself(pieces in prop::collection::vec(0..PIECES.len(), 0..16)) {
        let text = pieces.into_iter().map(|piece| PIECES[piece]).collect::<String>();
        if let Ok(card) = text.parse::<Card>() {
            prop_assert_eq!(&card.to_string().parse::<Card>().expect("reads back"), &card);
        }
    }

    #[test]
    fn virtual_cards_of_all_parts_read_back(
        channels in 1..64_u32, bits in 1..17_u32, rate in 1..100_000_000_u64, decimals in 0..4_usize,
        fifo in 1..1_u64 << 36, jitter in 0..1_000_000_000_i64, at in 0..1_i64 << 50, lasts in 1..1_i64 << 50,
        bus in 1.0..1e11_f64, seed in any::<u64>(),
    ) {
        let rate = format!("{}.{:0decimals$}", rate, 7 % 10_u64.pow(decimals as u32));
        let text = format!(
            "virtual:{channels}ch,{bits}bit,{rate}S/s,fifo={fifo}B,jitter={jitter}ns,hiccup={at}ns+{lasts}ns,\
             bus={bus}B/s,data=prbs,seed={seed}"
        );
        let card = text.parse::<Card>().expect("a card");
        prop_assert_eq!(card.to_string().parse::<Card>().expect("reads back"), card);
    }
}
