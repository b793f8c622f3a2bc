//! Metadata are read back as they were written, and no damage makes the reader panic.

use proptest::prelude::*;

use super::*;
use crate::channels::{ChannelCalibration, Justified};
use crate::clock::external::{ExternalReading, ExternalSilence};
use crate::clock::{BootId, ClockPair, ClockReference, Mark, MarkSource};
use hairspring_ring::gap::GapCause;
use hairspring_ring::layout::Container;
use hairspring_source::external::{ExternalBracket, ExternalFacts, ExternalKind};

/// Any description that a recorder could have when it begins.
fn any_about() -> impl Strategy<Value = About> {
    let layout = (1..70_u32, prop::sample::select(Container::ALL.to_vec()))
        .prop_map(|(channels, container)| Layout::stored_as(channels, container.bits(), container).expect("exists"));
    let rate = prop::option::of((1..1_000_000_000_u64, 1..1000_u64));
    let policy = prop::sample::select(OnOverrun::ALL.to_vec());
    let texts = ("\\PC{0,20}", prop::option::of("\\PC{0,20}"));
    (any::<[u8; 16]>(), layout, rate, texts, any::<[i64; 2]>(), 1..5_usize, policy, 1..999_u64).prop_map(
        |(id, layout, rate, (hardware, pattern), [realtime, monotonic], members, on_overrun, grains)| About {
            id: RecordingId(id),
            layout,
            rate: rate.and_then(|(frames, seconds)| SampleRate::new(frames, seconds)),
            hardware,
            pattern,
            started_realtime: Nanos::new(realtime),
            started_monotonic: Instant::BOOT + Nanos::new(monotonic),
            started_within: Some(Nanos::new(monotonic.unsigned_abs() as i64 & 0xFFFF)),
            block: Bytes(grains * layout.grain().bytes),
            members: (0..members).map(|member| format!("/data {member}/x").into()).collect(),
            member: members - 1,
            on_overrun,
            clocked: id[0] % 2 == 0,
            software: "hairspring 0".to_owned(),
            series: (id[1] % 2 == 0).then(|| SegmentOf {
                id: RecordingId(id),
                name: "x y".to_owned(),
                number: u32::from(id[2]),
                first: (id[3] % 2 == 0).then_some(Frames(id[4].into())),
                previous: (id[2] > 0).then_some(RecordingId([7; 16])),
                epoch: id[5].into(),
                epoch_first: Frames(id[6].into()),
            }),
            channels: if id[1] % 2 == 0 { Vec::new() } else { described(layout) },
            clock: any_clock(&id),
        },
    )
}

/// Descriptions of every channel but the first.
fn described(layout: Layout) -> Vec<ChannelDescription> {
    let channel = |number: u32| ChannelDescription {
        name: (number > 0).then(|| format!("channel {number}")),
        unit: (number % 2 == 1).then(|| "kPa".to_owned()),
        scale: (number % 3 == 1).then_some(0.1 / f64::from(number)),
        range: (number % 4 == 1).then_some([-1.5, 1e300]),
        justified: (number % 5 == 1).then_some(Justified::High),
        calibration: number.is_multiple_of(2).then(ChannelCalibration::default),
        ..ChannelDescription::default()
    };
    (0..layout.channels()).map(channel).collect()
}

/// A record of time with facts of every kind.
fn any_clock(id: &[u8; 16]) -> ClockRecord {
    let at = |ns: u8| Instant::from_monotonic(Nanos::new(ns.into()));
    let mut clock = ClockRecord::default();
    if id[2].is_multiple_of(2) {
        clock.boot_id = Some(BootId(*id));
        clock.reference =
            Some(ClockReference { synchronized: id[3].is_multiple_of(2), most_error: Nanos::new(7), asked: at(id[4]) });
    }
    for (number, byte) in id.iter().enumerate().take(usize::from(id[5] % 9)) {
        let [realtime, raw, suspended, within] = [i64::MAX, 1, 0, 50].map(|ns| Nanos::new(ns - i64::from(*byte)));
        clock.pair(ClockPair { monotonic: at(*byte), realtime, raw, suspended, within });
        let how = MarkSource::ALL[number % 5];
        clock.mark(Mark { frame: Frames(number as u64 * 1000), earliest: at(byte / 2), latest: at(*byte), how });
    }
    if id[6].is_multiple_of(2) {
        let kind = ExternalKind::ALL[usize::from(id[7] % 2)];
        let (name, late) = ("a \"clock\"".to_owned(), Nanos::new(id[8].into()));
        clock.external = Some(ExternalFacts { kind, id: "/dev/x".to_owned(), name, late });
        for (number, byte) in id.iter().enumerate().take(usize::from(id[9] % 9)) {
            let (earliest, latest, how) = (at(byte / 2), at(*byte), ExternalBracket::ALL[number % 4]);
            let ticks = number as i64 * 1_000_000_007 - i64::from(*byte);
            clock.external_reading(ExternalReading { ticks, earliest, latest, how });
            let (after, before, is_gone) = (at(number as u8), latest, byte.is_multiple_of(2));
            clock.external_silence(ExternalSilence { after, before, is_gone });
        }
    }
    clock
}

/// Any result that a recorder could have at the end.
fn any_closing() -> impl Strategy<Value = Closing> {
    let cause = prop::sample::select(GapCause::ALL.to_vec());
    let gap = (any::<[u32; 2]>(), cause, any::<i64>()).prop_map(|([first, frames], cause, found)| Gap {
        first: Frames(first.into()),
        frames: Frames(frames.into()),
        cause,
        found: Instant::BOOT + Nanos::new(found),
    });
    let verdict = prop::sample::select(RecordingVerdict::ALL.to_vec());
    let gaps = prop::collection::vec(gap, 0..5);
    (verdict, any::<bool>(), any::<[u64; 8]>(), gaps, "\\PC{0,20}", any::<[i64; 2]>()).prop_map(
        |(verdict, recovered, n, gaps, reason, [stall, elapsed])| Closing {
            verdict,
            reason,
            state: if recovered { State::Recovered } else { State::Ended(verdict) },
            ledger: Ledger {
                produced_bytes: n[0],
                stored_bytes: n[1],
                durable_bytes: n[2],
                in_flight_bytes: n[3],
                in_ring_bytes: n[4],
                in_fifo_bytes: n[5],
                lost_bytes: n[6],
                left_out_bytes: n[7],
                earlier_bytes: n[7] / 2,
                dropped_bytes: 0,
            },
            // One for a gap at a frame where there is no other gap.
            bounds: gaps
                .first()
                .filter(|gap| gaps[1..].iter().all(|other| other.first != gap.first))
                .map(|gap| GapBounds { first: gap.first, least: gap.frames, most: Frames(gap.frames.0 + 9) })
                .into_iter()
                .collect(),
            skips: gaps.iter().map(|gap| Skip { first: gap.first, frames: gap.frames }).collect(),
            triggers: gaps.iter().map(|gap| (gap.frames.0, gap.first)).collect(),
            gaps,
            fallbacks: vec![StoredFallback {
                name: "direct".to_owned(),
                refused: recovered.then(|| "tmpfs".to_owned()),
            }],
            direct_io_proven: !recovered,
            worst_stall: Nanos::new(stall),
            buffer_high_water: Bytes(n[0]),
            buffer: Bytes(n[1]),
            elapsed: Nanos::new(elapsed),
            ignored: hairspring_source::Ignored { foreign: n[0], restarts: n[1], ..Default::default() },
            missed: hairspring_source::trigger::Missed { short_shots: n[2], ..Default::default() },
        },
    )
}

/// Segments that do not touch in the source, of whole grains; in the file there may be holes between them.
fn any_segments(about: &About) -> impl Strategy<Value = Vec<StoredSegment>> + use<> {
    let step = about.layout.grain().frames;
    let in_file = prop_oneof![3 => Just(0), 1 => 1..20_u64];
    prop::collection::vec((1..50_u64, 1..50_u64, in_file), 0..6).prop_map(move |pieces| {
        let (mut sample_start, mut first) = (0, 0);
        let segment = |(hole, frames, in_file): (u64, u64, u64)| {
            (sample_start, first) = (sample_start + in_file * step, first + hole * step);
            let segment = StoredSegment {
                sample_start: Frames(sample_start),
                first: Frames(first),
                frames: Frames(frames * step),
            };
            (sample_start, first) = (sample_start + frames * step, first + frames * step);
            segment
        };
        pieces.into_iter().map(segment).collect()
    })
}

fn any_recording() -> impl Strategy<Value = (About, Option<Closing>, Vec<StoredSegment>)> {
    let about = any_about().prop_flat_map(|about| (any_segments(&about), Just(about)));
    (about, prop::option::of(any_closing())).prop_map(|((segments, about), closing)| (about, closing, segments))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn metadata_are_read_back_as_they_were((about, closing, segments) in any_recording()) {
        let text = render(&about, closing.as_ref(), &segments);
        prop_assert_eq!(parse(&text), Ok((about, closing, segments)));
    }

    #[test]
    fn damaged_metadata_are_refused_or_read_but_never_panic(
        (about, closing, segments) in any_recording(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
    ) {
        let mut text = render(&about, closing.as_ref(), &segments);
        for (at, byte) in damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let _ = (parse(&text), parse_foreign(&text));
        text.truncate(cut.index(text.len()));
        prop_assert!(parse(&text).is_err());
    }
}

fn about() -> About {
    About {
        id: RecordingId([1; 16]),
        layout: Layout::stored_as(1, 12, Container::Packed12).expect("exists"),
        rate: SampleRate::hz(1_000_000),
        hardware: "virtual".to_owned(),
        pattern: None,
        started_realtime: Nanos::from_secs(1_795_276_483),
        started_monotonic: Instant::BOOT + Nanos::from_secs(5),
        started_within: Some(Nanos::new(1)),
        block: Bytes(3 * 4096),
        members: vec!["/data/x".into()],
        member: 0,
        on_overrun: OnOverrun::Gap,
        clocked: true,
        software: "hairspring 0".to_owned(),
        series: None,
        channels: Vec::new(),
        clock: ClockRecord::default(),
    }
}

/// The view of other programs.
#[test]
fn packed_samples_are_bytes_by_the_grain_for_tools_that_do_not_know_better() {
    let segments = [(0, 0, 8), (8, 8, 4), (12, 100, 2)].map(|(sample_start, first, frames)| StoredSegment {
        sample_start: Frames(sample_start),
        first: Frames(first),
        frames: Frames(frames),
    });
    let json: serde_json::Value = serde_json::from_slice(&render(&about(), None, &segments)).expect("JSON");
    assert_eq!(json["global"]["core:datatype"], "ru8");
    assert_eq!(json["global"]["core:num_channels"], 3);
    assert_eq!(json["global"]["core:sample_rate"], 500_000.0);
    assert_eq!(json["global"]["hairspring:state"], "recording");
    let starts: Vec<_> = json["captures"].as_array().expect("a list").iter().collect();
    assert_eq!(starts.len(), 2, "touching segments are one capture");
    assert_eq!((&starts[1]["core:sample_start"], &starts[1]["core:global_index"]), (&6.into(), &50.into()));
    assert_eq!(starts[0]["core:datetime"], "2026-11-21T15:54:43.000000000Z");
}

#[test]
fn newer_and_foreign_metadata_are_told_apart_from_broken_ones() {
    let text = String::from_utf8(render(&about(), None, &[])).expect("text");
    let newer = text.replace("\"1.1.0\"", "\"4.0.0\"").replace("hairspring:layout", "hairspring:form");
    assert_eq!(parse(newer.as_bytes()), Err(SigmfError::Newer("4.0.0".to_owned())));
    let minor =
        text.replace("\"1.1.0\"", "\"1.7.0\"").replace("\"global\": {", "\"global\": {\"hairspring:new\": [1],");
    assert!(parse(minor.as_bytes()).is_ok());
    let foreign = text.replace("\"name\": \"hairspring\"", "\"name\": \"antenna\"");
    assert_eq!(parse(foreign.as_bytes()), Err(SigmfError::Foreign));
    assert!(matches!(parse(b"{}"), Err(SigmfError::NotSigmf(_))));
    let unfit = text.replace("\"core:num_channels\": 3", "\"core:num_channels\": 4");
    assert!(matches!(parse(unfit.as_bytes()), Err(SigmfError::Value(_))));
}

#[test]
fn recordings_of_other_programs_are_opened_where_their_samples_are_plain() {
    let json = br#"{"global": {"core:datatype": "ci16_le", "core:version": "1.2.0", "core:sample_rate": 2400000.5},
                    "captures": [{"core:sample_start": 0}, {"core:sample_start": 10, "core:global_index": 25}],
                    "annotations": []}"#;
    let foreign = parse_foreign(json).expect("plain");
    assert_eq!(foreign.layout, Layout::stored_as(2, 16, Container::I16).expect("exists"));
    assert_eq!(foreign.rate, SampleRate::new(4_800_001, 2));
    let captures: Vec<_> = foreign.captures.iter().map(|capture| (capture.start.0, capture.first.0)).collect();
    assert_eq!(captures, [(0, 0), (10, 25)]);
    let unknown = String::from_utf8_lossy(json).replace("ci16_le", "rf16_le");
    assert!(matches!(parse_foreign(unknown.as_bytes()), Err(SigmfError::Value(_))));
}
