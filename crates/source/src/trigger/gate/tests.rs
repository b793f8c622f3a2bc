//! The gate, shown a stream in pieces of many sizes.

use hairspring_machine::Nanos;

use proptest::prelude::*;

use super::*;
use hairspring_ring::layout::Container;

/// A stream with holes: runs of 1-channel 8-bit frames, each with the index of its first frame.
type Stream = Vec<(u64, Vec<i8>)>;

/// A kept shot: its number, the trigger, the missing frames, the frames.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    number: u64,
    triggered: u64,
    lacks: u64,
    frames: Vec<u64>,
}

fn gate(trigger: &str, pre: u64, post: u64, shots: Shots) -> Gate {
    let layout = Layout::analogue(1, 8).expect("exists");
    Gate::new(trigger.parse().expect("a trigger"), layout, Frames(pre), Frames(post), shots).expect("possible")
}

/// Feeds a stream, never showing more than `window` undecided bytes and adding `step` at a time, as a ring would.
fn run(gate: &mut Gate, stream: &Stream, step: usize) -> Vec<Kept> {
    let window = gate.must_hold().0 as usize + step;
    let mut shots: Vec<Kept> = Vec::new();
    for (number, (first, frames)) in stream.iter().enumerate() {
        let bytes: Vec<u8> = frames.iter().map(|value| value.to_le_bytes()[0]).collect();
        let (mut begin, mut end) = (0, 0);
        if number > 0 {
            gate.jump(Frames(*first));
        }
        while begin < bytes.len() {
            let more = end < bytes.len();
            let decision = gate.feed(Frames(first + begin as u64), &bytes[begin..end], more);
            let decided = decision.frames.0;
            assert!(decision.keep.is_some() || decision.triggered.is_none());
            if let Some(number) = decision.keep {
                if let Some(triggered) = decision.triggered {
                    shots.push(Kept { number, triggered: triggered.0, lacks: decision.lacks.0, frames: Vec::new() });
                }
                let shot = shots.last_mut().expect("a shot begins with its trigger");
                assert_eq!(shot.number, number);
                shot.frames.extend((0..decided).map(|frame| first + begin as u64 + frame));
            }
            begin += decided as usize;
            assert!(begin <= end, "decided about frames that were not shown");
            if decided == 0 {
                assert!(more, "nothing decided at the end of a run");
                assert!(end - begin < window, "held more than it said it would");
                end = (end + step).min(bytes.len());
            }
        }
    }
    shots
}

#[track_caller]
fn check(
    trigger: &str,
    (pre, post): (u64, u64),
    shots: Shots,
    stream: &[(u64, &[i8])],
    expected: &[(u64, u64, &[u64])],
) {
    let stream: Stream = stream.iter().map(|(first, frames)| (*first, frames.to_vec())).collect();
    let expected: Vec<Kept> = expected
        .iter()
        .enumerate()
        .map(|(number, (triggered, lacks, frames))| Kept {
            number: number as u64,
            triggered: *triggered,
            lacks: *lacks,
            frames: frames.to_vec(),
        })
        .collect();
    for step in 1..12 {
        assert_eq!(run(&mut gate(trigger, pre, post, shots), &stream, step), expected, "step {step}");
    }
}

const EVER: Shots = Shots::Repeated(None);

#[test]
fn a_shot_has_its_frames_before_and_after_the_trigger() {
    check("level:ch0>5cnt", (3, 2), EVER, &[(0, &[0, 0, 0, 0, 0, 6, 0, 0, 0])], &[(5, 0, &[2, 3, 4, 5, 6])]);
    check("level:ch0<-5cnt", (0, 1), EVER, &[(0, &[0, 0, -6, -5])], &[(2, 0, &[2])]);
    check("falling:ch0@2cnt", (1, 1), EVER, &[(0, &[0, 3, 2, 1, 0])], &[(2, 0, &[1, 2])]);
}

#[test]
fn a_single_shot_is_the_only_one() {
    check("level:ch0>0cnt", (0, 1), Shots::Single, &[(0, &[0, 1, 0, 1, 1])], &[(1, 0, &[1])]);
    let mut single = gate("level:ch0>0cnt", 0, 1, Shots::Single);
    run(&mut single, &vec![(0, vec![0, 1, 0])], 1);
    assert!(single.is_done());
}

#[test]
fn nothing_triggers_again_until_the_shot_is_over() {
    check(
        "level:ch0>0cnt",
        (0, 3),
        EVER,
        &[(0, &[1, 1, 1, 1, 0, 0, 0, 1])],
        &[(0, 0, &[0, 1, 2]), (3, 0, &[3, 4, 5]), (7, 0, &[7])],
    );
    // The comparator has seen the low frame within the shot, so the first frame after it is an edge.
    check(
        "rising:ch0@1cnt",
        (0, 3),
        EVER,
        &[(0, &[0, 1, 1, 0, 1, 1, 1, 1])],
        &[(1, 0, &[1, 2, 3]), (4, 0, &[4, 5, 6])],
    );
    check("rising:ch0@1cnt", (0, 3), EVER, &[(0, &[0, 1, 0, 1, 1, 1, 1, 1])], &[(1, 0, &[1, 2, 3])]);
}

#[test]
fn a_signal_that_begins_beyond_the_level_is_no_edge() {
    check("rising:ch0@5cnt", (0, 1), EVER, &[(0, &[6, 6, 4, 5])], &[(3, 0, &[3])]);
}

#[test]
fn noise_within_the_hysteresis_is_no_edge() {
    check("rising:ch0@5cnt~3cnt", (0, 1), EVER, &[(0, &[0, 5, 4, 5, 2, 5, 1, 5])], &[(1, 0, &[1]), (7, 0, &[7])]);
}

#[test]
fn a_step_across_a_gap_is_no_edge() {
    check("rising:ch0@5cnt", (1, 1), EVER, &[(0, &[0, 0]), (10, &[9, 9, 0, 9])], &[(13, 0, &[12, 13])]);
}

#[test]
fn a_shot_says_what_it_lacks_before_its_trigger() {
    check("level:ch0>0cnt", (4, 1), EVER, &[(0, &[0, 1, 0, 0])], &[(1, 3, &[0, 1])]);
    check("level:ch0>0cnt", (4, 1), EVER, &[(0, &[0, 0]), (7, &[0, 1, 0])], &[(8, 3, &[7, 8])]);
    check("level:ch0>0cnt", (2, 2), EVER, &[(0, &[0, 0, 1, 0, 0, 1, 0])], &[(2, 0, &[0, 1, 2, 3]), (5, 1, &[4, 5, 6])]);
}

#[test]
fn a_shot_goes_on_behind_a_gap_for_as_long_as_if_nothing_were_missing() {
    check("level:ch0>0cnt", (0, 5), EVER, &[(0, &[1, 0]), (3, &[0, 0, 0, 0])], &[(0, 0, &[0, 1, 3, 4])]);
    check("level:ch0>0cnt", (0, 5), EVER, &[(0, &[1, 0]), (9, &[0, 1])], &[(0, 0, &[0, 1]), (10, 0, &[10])]);
}

#[test]
fn an_external_trigger_is_the_frame_of_its_time() {
    let mut gate = gate("external", 1, 2, EVER);
    gate.starts(Instant::BOOT + Nanos::from_secs(1), SampleRate::hz(1000).expect("possible"));
    let calls = gate.external().expect("external");
    for ms in [8, 3, 4] {
        assert!(calls.fire(Instant::BOOT + Nanos::from_secs(1) + Nanos::from_millis(ms)));
    }
    let kept = run(&mut gate, &vec![(0, vec![0; 12])], 4);
    let expected = [(0, 3, vec![2, 3, 4]), (1, 8, vec![7, 8, 9])];
    let expected = expected.map(|(number, triggered, frames)| Kept { number, triggered, lacks: 0, frames });
    assert_eq!(kept, expected);
    assert_eq!(gate.missed().ignored_calls, 1, "frame 4 is within the first shot");
}

#[test]
fn an_external_trigger_without_a_clock_is_the_newest_frame() {
    let mut gate = gate("external", 2, 1, Shots::Single);
    let calls = gate.external().expect("external");
    assert_eq!(gate.feed(Frames(0), &[0; 10], true).frames, Frames(8));
    assert!(calls.fire(Instant::BOOT));
    assert_eq!(gate.feed(Frames(8), &[0; 5], true), Decision { frames: Frames(2), ..Decision::default() });
    let kept = gate.feed(Frames(10), &[0; 3], true);
    assert_eq!((kept.frames, kept.keep, kept.triggered), (Frames(3), Some(0), Some(Frames(12))));
    assert!(gate.is_done());
}

#[test]
fn a_shot_of_which_nothing_is_left_is_counted_and_has_no_number() {
    let mut gate = gate("level:ch0>0cnt", 1, 2, Shots::Single);
    // Frame 4 triggers; the frames before its lead-in are left out; then the ring loses all of the shot.
    assert_eq!(gate.feed(Frames(0), &[0, 0, 0, 0, 1, 0], true).frames, Frames(3));
    gate.jump(Frames(50));
    assert_eq!(gate.feed(Frames(50), &[0, 1, 0], true).frames, Frames(3));
    assert_eq!((gate.missed().lost_shots, gate.shots(), gate.is_done()), (1, 1, true));
}

#[test]
fn a_full_ring_that_loses_frames_that_were_looked_at_loses_no_edge_among_the_others() {
    let mut gate = gate("rising:ch0@1cnt", 4, 1, EVER);
    assert_eq!(gate.feed(Frames(0), &[0, 0, 0], true).frames, Frames(0));
    gate.jump(Frames(2));
    let decision = gate.feed(Frames(2), &[0, 1], true);
    assert_eq!((decision.triggered, decision.lacks), (Some(Frames(3)), Frames(3)));
    assert_eq!(gate.missed().short_shots, 1);
}

#[test]
fn shots_of_packed_samples_are_whole_grains() {
    let layout = Layout::stored_as(1, 12, Container::Packed12).expect("exists");
    let trigger = "level:ch0>0cnt".parse().expect("a trigger");
    let mut gate = Gate::new(trigger, layout, Frames(2), Frames(2), EVER).expect("possible");
    // Frames 0 to 9; frame 5 is 1: frames 3 to 6 are wanted, 2 to 7 are whole grains.
    let mut bytes = [0; 15];
    bytes[8] = 0;
    bytes[7] = 0x10;
    assert_eq!(gate.feed(Frames(0), &bytes, false).frames, Frames(2));
    let kept = gate.feed(Frames(2), &bytes[3..], false);
    assert_eq!((kept.frames, kept.keep, kept.triggered, kept.lacks), (Frames(6), Some(0), Some(Frames(5)), Frames(0)));
    assert_eq!(gate.feed(Frames(8), &bytes[12..], false).keep, None);
    assert_eq!(gate.missed().short_shots, 0, "whole");
}

#[test]
fn triggers_that_can_never_fire_are_refused() {
    let refused = |trigger: &str| {
        let layout = Layout::analogue(2, 14).expect("exists");
        let trigger = trigger.parse().expect("a trigger");
        Gate::new(trigger, layout, Frames(0), Frames(1), EVER).map(|_| ()).expect_err("never").to_string()
    };
    for never in
        ["level:ch0>1", "level:ch1<-1.0", "rising:ch0@-1", "rising:ch0@-0.5~1", "level:ch0>8191cnt", "level:ch2>0"]
    {
        assert!(refused(never).contains("write"), "{never}");
    }
    let layout = Layout::digital(3).expect("exists");
    let possible =
        |trigger: &str| Gate::new(trigger.parse().expect("a trigger"), layout, Frames(0), Frames(1), EVER).is_ok();
    assert!(possible("level:ch2>0.5") && possible("level:ch2>0") && possible("falling:ch0@0.5"));
    assert!(!possible("level:ch2>1"));
    let empty = Gate::new(Trigger::External, layout, Frames(3), Frames(0), EVER);
    assert!(empty.is_err());
}

/// The shots that a gate should keep, computed from the whole stream.
fn model(edge: bool, pre: u64, post: u64, limit: Option<u64>, stream: &Stream) -> Vec<Kept> {
    let (mut shots, mut held_off) = (Vec::<Kept>::new(), 0);
    for (first, frames) in stream {
        let mut decided = (*first).max(held_off);
        let mut low = false;
        for (at, value) in frames.iter().enumerate() {
            let frame = first + at as u64;
            let high = *value > 0;
            let fires = if edge { high && low } else { high };
            low = !high;
            if fires && frame >= held_off && limit.is_none_or(|limit| (shots.len() as u64) < limit) {
                let begin = frame.saturating_sub(pre).max(decided);
                let lacks = (i128::from(begin) - (i128::from(frame) - i128::from(pre))) as u64;
                shots.push(Kept {
                    number: shots.len() as u64,
                    triggered: frame,
                    lacks,
                    frames: (begin..frame).collect(),
                });
                held_off = frame + post;
                decided = held_off;
            }
            if let Some(shot) = shots.last_mut()
                && frame < held_off
            {
                shot.frames.push(frame);
            }
        }
    }
    shots
}

proptest! {
    #[test]
    fn every_piecewise_feeding_decides_as_the_whole_stream_would(
        edge: bool,
        pre in 0_u64..12,
        post in 1_u64..12,
        limit in proptest::option::of(1_u64..4),
        runs in proptest::collection::vec((1_u64..9, proptest::collection::vec(0_i8..2, 1..60)), 1..5),
        step in 1_usize..40,
    ) {
        let (mut stream, mut at) = (Stream::new(), 0);
        for (hole, frames) in runs {
            at += if stream.is_empty() { 0 } else { hole };
            let length = frames.len() as u64;
            stream.push((at, frames));
            at += length;
        }
        let trigger = if edge { "rising:ch0@1cnt" } else { "level:ch0>0cnt" };
        let shots = Shots::Repeated(limit);
        prop_assert_eq!(run(&mut gate(trigger, pre, post, shots), &stream, step), model(edge, pre, post, limit, &stream));
    }
}
