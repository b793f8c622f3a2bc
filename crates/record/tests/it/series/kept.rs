//! Segments that are kept: those that a trigger pins, and the newest one.

use hairspring_recording::series::segment_of;
use hairspring_store::Errno;
use hairspring_store::scripted::{OpKind, What, When};

use super::*;

/// Fires a few times in 60,000 frames.
const SOME: &str = "level:ch0>32764cnt";
/// Fires a few times in 300,000 frames.
const RARE: &str = "level:ch0>32766cnt";

/// The frames of a case at which the trigger fires.
fn triggers(text: &'static str, frames: u64) -> Vec<u64> {
    let case = Case { frames, blocks: 1000, trigger: Some((text, 0, 1)), ..Case::default() };
    let (outcome, _) = run(&case, Image::default(), |_, _| {}).ended.expect("recorded");
    outcome.triggers.iter().map(|(_, frame)| frame.0).collect()
}

fn is_pinned(image: &Image, number: u32) -> bool {
    image.read(pin_of(&segment_base(Path::new("a/x"), number))).is_some()
}

#[test]
fn a_trigger_pins_the_segments_that_its_surroundings_reach() {
    let frames = 300_000;
    let triggers = triggers(RARE, frames);
    assert!((2..10).contains(&triggers.len()), "{triggers:?}");
    let everything = run(&Case { frames, ..Case::default() }, Image::default(), |_, _| {});
    let all = places(&everything.disk, 0..=99);
    for (on_overrun, pre, post) in [
        (OnOverrun::Gap, 0, 0),
        (OnOverrun::Gap, 6000, 0),
        (OnOverrun::Overwrite, 0, 6000),
        (OnOverrun::Gap, 14_000, 9000),
    ] {
        let reached = |(_, first, end): &(u32, u64, u64)| {
            triggers.iter().any(|at| at.saturating_sub(pre) < *end && at + post.max(1) > *first)
        };
        let expected: Vec<_> = all.iter().filter(|place| reached(place)).copied().collect();
        // Enough closed segments are kept anyway that the ones before a trigger still exist.
        let retention = Retention { segments: Some(2), ..Retention::default() };
        let keep_on = Some((RARE, pre, post));
        let case = Case { frames, retention, keep_on, on_overrun, ..Case::default() };
        let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
        let (outcome, summary) = ended.expect("recorded");
        assert_eq!((outcome.verdict, &summary.troubles[..]), (RecordingVerdict::Complete, &[] as &[String]));
        assert!(summary.dropped_segments > 0 && summary.pinned == expected.len(), "{summary:?} {expected:?}");
        let image = disk.image_after_power_cut(1);
        let pinned: Vec<_> = all.iter().filter(|(number, ..)| is_pinned(&image, *number)).copied().collect();
        assert_eq!(pinned, expected, "{triggers:?} {pre} {post}");
        let left = places(&disk, 0..=99);
        assert!(expected.iter().all(|place| left.contains(place)), "{left:?}");
        let (_, whole) = verified(&disk, "a/x");
        assert_eq!((&whole.faults[..], whole.mismatch), (&[] as &[String], None));
    }
}

#[test]
fn what_a_user_releases_is_not_pinned_again_and_a_pin_that_is_there_is_left_alone() {
    let triggers = triggers(SOME, 60_000);
    let length = 3 * BLOCK / 6;
    let number = u32::try_from(triggers[0] / length).expect("small");
    let case = Case { frames: 60_000, keep_on: Some((SOME, 0, 0)), ..Case::default() };
    let released = std::cell::Cell::new(false);
    let pin = pin_of(&segment_base(Path::new("a/x"), number));
    let Run { disk, .. } = run(&case, Image::default(), |disk, _| {
        if !released.get() && disk.image_after_kill(0).read(&pin).is_some() {
            released.set(disk.store(8).remove(&pin).is_ok());
        }
    });
    assert!(released.get() && !is_pinned(&disk.image_after_kill(0), number));
    // Recovery does not delete it either.
    let changed = recovered(&disk.image_after_kill(0), 0).expect("a series").changed;
    assert_eq!(changed, Vec::<String>::new());
    let mut image = Image::default();
    image.put(&pin, b"mine");
    let Run { disk, .. } = run(&case, image, |_, _| {});
    assert_eq!(disk.image_after_kill(0).read(&pin).as_deref(), Some(&b"mine"[..]));
}

#[test]
fn a_pin_that_cannot_be_made_holds_until_the_run_ends_and_is_told() {
    let triggers = triggers(SOME, 60_000);
    let case = Case { frames: 60_000, keep_on: Some((SOME, 0, 0)), ..Case::default() };
    let retention = Retention { segments: Some(0), ..Retention::default() };
    let faults =
        vec![Fault { when: When::From(1), ..Fault::nth(OpKind::Put, 1, What::Error(Errno(libc::EACCES))).on(".keep") }];
    let script = DiskScript { faults, ..case.script.clone() };
    let Run { disk, ended, .. } = run(&Case { retention, script, ..case }, Image::default(), |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    let told = summary.troubles.iter().filter(|trouble| trouble.contains("failed to pin segment")).count();
    assert!(told > 0 && summary.pinned == 0 && summary.dropped_segments > 0, "{summary:?}");
    let left = places(&disk, 0..=99);
    assert!(triggers.iter().all(|at| left.iter().any(|(_, first, end)| (*first..*end).contains(at))), "{left:?}");
}

/// The image without the pins of segments that the index does not call closed, as if the kill had come before they were
/// made.
fn without_open_pins(image: &Image) -> Image {
    let index = index_at(&mut stores(&disk_of(image)), Path::new("a/x")).ok().flatten().unwrap_or_default();
    let is_open_pin = |path: &Path| {
        let number = segment_of(&path.with_extension("")).map(|(_, number)| number);
        let is_closed = |number| index.segments.get(&number).is_some_and(|listed| listed.end.is_some());
        path.extension().is_some_and(|ending| ending == "keep") && !number.is_some_and(is_closed)
    };
    // Not a copy of the files, whose reserved space is large.
    let disk = disk_of(image);
    for pin in image.paths().filter(|path| is_open_pin(path)) {
        disk.store(8).remove(pin).expect("removed");
    }
    disk.image_after_kill(0)
}

#[test]
fn a_crash_at_every_step_deletes_nothing_that_a_trigger_asked_to_keep() {
    let triggers = triggers(SOME, 36_000);
    assert!(!triggers.is_empty());
    let retention = Retention { segments: Some(1), ..Retention::default() };
    let mut asked_before = 0;
    for (members, pre, post, every) in [(1, 0, 0, 7), (1, 3000, 9000, 19), (2, 0, 3000, 29)] {
        let keep_on = Some((SOME, pre, post));
        let case = Case { frames: 36_000, blocks: 1, members, retention, keep_on, ..Case::default() };
        let operations = run(&case, Image::default(), |_, _| {}).disk.operations();
        for at in (1..=operations).step_by(every) {
            let mut case = case.clone();
            case.script.faults = vec![Fault::crash_at(at)];
            let Run { disk, durable, .. } = run(&case, Image::default(), |_, _| {});
            let kill = disk.image_after_kill(at);
            let power_cut = disk.image_after_power_cut(at);
            for image in [without_open_pins(&kill), kill, power_cut] {
                let Some(mended) = recovered(&image, durable) else { continue };
                asked_before += mended.changed.iter().filter(|change| change.contains("before the crash")).count();
                let disk = disk_of(&image);
                drop(recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {}));
                let (left, image) = (places(&disk, 0..=99), disk.image_after_kill(0));
                let sure = left.last().map_or(0, |(_, _, end)| *end);
                for trigger in &triggers {
                    let place = left.iter().find(|(_, first, end)| (*first..*end).contains(trigger));
                    assert!(
                        place.is_some() || *trigger >= sure,
                        "crash at {at}: frame {trigger} was deleted: {left:?}"
                    );
                    let Some((number, ..)) = place else { continue };
                    assert!(is_pinned(&image, *number), "crash at {at}: segment {number} has frame {trigger}");
                }
            }
        }
    }
    assert!(asked_before > 0, "no crash came between a trigger and its pin");
}

/// A slow disk takes longer to describe a segment than segments are kept. Every segment was deleted as soon as it was
/// described, and at its end the recording had none.
#[test]
fn the_newest_segment_is_there_at_the_end_however_long_its_description_takes() {
    fn an_hour_later_each_time() -> ClockMoment {
        use std::sync::atomic::{AtomicI64, Ordering};
        static HOURS: AtomicI64 = AtomicI64::new(0);
        // Relaxed: a counter.
        let hours = HOURS.fetch_add(1, Ordering::Relaxed);
        ClockMoment { boottime: Nanos::from_secs(3600) * hours, ..moment() }
    }
    let retention = Retention { time: Some(Nanos::from_secs(60)), ..Retention::default() };
    let case = Case { retention, clocks: an_hour_later_each_time, ..Case::default() };
    let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((summary.segments, summary.kept, summary.dropped_segments), (4, 1, 3), "{summary:?} {}", outcome.reason);
    assert_eq!(places(&disk, 0..=9), [(3, 36_864, 40_000)]);
}
