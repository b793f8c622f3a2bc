//! [`Gate`]: decides which frames of a stream are kept.
//!
//! **Problem.** A trigger that comes after a frame may decide whether the frame is kept. But the frames are in a ring
//! that must be emptied all the time.
//!
//! **Solution.** A state machine that stores no samples. The caller shows it the undecided frames. It answers for a run
//! at their beginning whether to keep or to omit the run. While no trigger has come, it omits all but the last `pre`
//! frames.
//!
//! ```text
//!             1 trigger              2 first frame of the shot
//!  searching ───────────→ leading in ───────────→ keeping
//!      ↑                      │ 4 all of it is gone   │ 3 last frame
//!      └──────────────────────┴───────────────────────┘
//! ```
//!
//! During a shot no other shot begins, but the comparator continues: an edge right after a shot counts if the signal
//! was on the other side within the shot. Missing frames count as if they were there. No edge is detected across them.

use hairspring_machine::Instant;

use super::external::ExternalTrigger;
use super::probe::{Probe, Test};
use super::{Level, Missed, Shots, Side, Slope, Trigger, TriggerError};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// The decision on the oldest frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The number of decided frames, in whole grains. 0: show more frames.
    pub frames: Frames,
    /// The shot to which they belong, from 0; `None` if they are omitted.
    pub keep: Option<u64>,
    /// With the first frames of a shot: the frame that triggered. It may lie in a gap.
    pub triggered: Option<Frames>,
    /// With the first frames of a shot: how many frames the shot lacks before them, because the trigger came too early
    /// after the beginning, a gap or the shot before.
    pub lacks: Frames,
}

/// A shot under way.
#[derive(Clone, Copy, Debug)]
struct Shot {
    number: u64,
    /// The frame that triggered.
    frame: u64,
    /// The first frame after it.
    end: u64,
    /// Whether some of its frames were kept already.
    begun: bool,
}

/// The condition that the gate looks for.
#[derive(Debug)]
enum Watch {
    /// A frame that passes `fire`.
    Level { probe: Probe, fire: Test },
    /// A frame that passes `fire`, after one that passed `arm`.
    Edge { probe: Probe, arm: Test, fire: Test, armed: bool },
    /// Calls from outside; these were taken and lie in the future.
    External { calls: ExternalTrigger, waiting: Vec<Instant> },
}

/// Decides which frames are kept. A pure state machine: no clock, no thread, no allocation after its construction.
#[derive(Debug)]
pub struct Gate {
    watch: Watch,
    layout: Layout,
    pre: u64,
    post: u64,
    limit: Option<u64>,
    /// When frame 0 began, and the rate: for external triggers.
    clock: Option<(Instant, SampleRate)>,
    /// The oldest undecided frame.
    undecided: u64,
    /// The first frame that the comparator has not seen.
    scanned: u64,
    /// The end of the last shot: earlier external triggers are ignored.
    held_off: u64,
    shot: Option<Shot>,
    shots: u64,
    missed: Missed,
}

impl Gate {
    /// A gate that keeps, for each trigger, `pre` frames before it and `post` frames from it on.
    ///
    /// # Errors
    /// The channel does not exist, no sample can fulfil the trigger, or the shots would be empty or endless.
    pub fn new(
        trigger: Trigger,
        layout: Layout,
        pre: Frames,
        post: Frames,
        shots: Shots,
    ) -> Result<Self, TriggerError> {
        if post.0 == 0 || pre.0.checked_add(post.0).is_none_or(|length| length > LONGEST) {
            return Err(TriggerError(format!(
                "a shot of {} before and {} from its trigger: write 1 to 10^15",
                pre.0, post.0
            )));
        }
        Ok(Self {
            watch: watch(trigger, layout)?,
            layout,
            pre: pre.0,
            post: post.0,
            limit: shots.limit(),
            clock: None,
            undecided: 0,
            scanned: 0,
            held_off: 0,
            shot: None,
            shots: 0,
            missed: Missed::default(),
        })
    }

    /// Sets the time at which the stream began (`CLOCK_MONOTONIC`) and its rate. Then an external trigger selects the
    /// frame taken at its time. Without this it selects the newest frame when the gate sees it.
    pub fn starts(&mut self, at: Instant, rate: SampleRate) {
        self.clock = Some((at, rate));
    }

    /// The handle that fires an external trigger; `None` for another trigger.
    pub fn external(&self) -> Option<ExternalTrigger> {
        match &self.watch {
            Watch::External { calls, .. } => Some(calls.clone()),
            _ => None,
        }
    }

    /// The most undecided bytes while the gate waits for more. A buffer must be larger.
    pub fn must_hold(&self) -> Bytes {
        let grain = self.layout.grain();
        Bytes(self.layout.bytes_of(Frames(self.pre.next_multiple_of(grain.frames))).0 + grain.bytes)
    }

    /// Shots that have begun.
    pub fn shots(&self) -> u64 {
        self.shots
    }

    /// Triggers since the start that made no shot, or a partial one.
    pub fn missed(&self) -> Missed {
        let (waiting, refused) = match &self.watch {
            Watch::External { calls, waiting } => (waiting.len() as u64 + calls.waiting(), calls.refused()),
            _ => (0, 0),
        };
        let unheeded = if self.is_done() { 0 } else { waiting };
        Missed { ignored_calls: self.missed.ignored_calls + unheeded, refused_calls: refused, ..self.missed }
    }

    /// Whether no shot is under way. Frames before the next trigger may be undecided.
    pub fn is_between_shots(&self) -> bool {
        self.shot.is_none()
    }

    /// Whether the last shot is over, so that all later frames are omitted.
    pub fn is_done(&self) -> bool {
        self.shot.is_none() && self.limit.is_some_and(|limit| self.shots >= limit)
    }

    /// Declares the undecided frames before `next` missing. First decide the frames before the gap: feed them with
    /// `more_to_come` false. If a full ring loses its oldest frames, there is nothing to feed.
    pub fn jump(&mut self, next: Frames) {
        self.undecided = next.0;
        if next.0 > self.scanned {
            self.scanned = next.0;
            if let Watch::Edge { armed, .. } = &mut self.watch {
                *armed = false;
            }
        }
    }

    /// Passes over the frames in `bytes`, of which the first is the oldest undecided one: none of them triggers, but
    /// the comparator sees them. Call it between shots.
    pub fn pass(&mut self, first: Frames, bytes: &[u8]) {
        let end = first.0 + self.layout.frames_in(Bytes(bytes.len() as u64)).0;
        self.look_on(first.0, end, end, bytes);
        self.undecided = end;
    }

    /// Decides on the frames in `bytes`. The first has the global index `first` and is the oldest undecided frame.
    /// `more_to_come` is false at the end of the stream and before a gap: then repeated calls with the remaining frames
    /// decide all of them.
    ///
    /// # Panics
    /// If the frames do not begin with the oldest undecided one: [`Gate::jump`] was not called.
    pub fn feed(&mut self, first: Frames, bytes: &[u8], more_to_come: bool) -> Decision {
        assert!(first.0 == self.undecided, "frames from {} on, but {} is undecided", first.0, self.undecided);
        let first = first.0;
        let end = first + self.layout.frames_in(Bytes(bytes.len() as u64)).0;
        loop {
            let Some(shot) = self.shot else {
                if end == first {
                    return Decision::default();
                }
                if self.is_done() {
                    return self.leave_out(end);
                }
                if let Some(frame) = self.search(first, end, bytes) {
                    let past = frame.saturating_add(self.post).next_multiple_of(self.layout.grain().frames);
                    self.shot = Some(Shot { number: self.shots, frame, end: past, begun: false }); // 1
                    continue;
                }
                let keep = if more_to_come { self.lead_in(end) } else { end };
                return self.leave_out(keep.max(first));
            };
            if shot.end <= first {
                self.missed.lost_shots += u64::from(!shot.begun); // 4
                self.finish(shot);
                continue;
            }
            if end == first {
                return Decision::default();
            }
            let begin = if shot.begun { first } else { self.lead_in(shot.frame).max(first) };
            return if begin > first { self.leave_out(begin.min(end)) } else { self.keep(shot, first, end, bytes) };
        }
    }

    /// The first frame, at a whole grain, that a trigger at `frame` keeps.
    fn lead_in(&self, frame: u64) -> u64 {
        let begin = frame.saturating_sub(self.pre);
        begin - begin % self.layout.grain().frames
    }

    fn leave_out(&mut self, until: u64) -> Decision {
        let frames = Frames(until - self.undecided);
        self.undecided = until;
        Decision { frames, ..Decision::default() }
    }

    fn keep(&mut self, mut shot: Shot, first: u64, end: u64, bytes: &[u8]) -> Decision {
        let until = shot.end.min(end);
        let mut decision = Decision { frames: Frames(until - first), keep: Some(shot.number), ..Decision::default() };
        if !shot.begun {
            shot.begun = true; // 2
            self.shots += 1;
            decision.triggered = Some(Frames(shot.frame));
            let wanted = i128::from(shot.frame) - i128::from(self.pre);
            decision.lacks = Frames(u64::try_from(i128::from(first) - wanted).unwrap_or(0));
            self.missed.short_shots += u64::from(decision.lacks.0 > 0);
        }
        self.look_on(first, until, end, bytes);
        self.undecided = until;
        self.shot = Some(shot);
        if until == shot.end {
            self.finish(shot); // 3
        }
        decision
    }

    fn finish(&mut self, shot: Shot) {
        self.held_off = shot.end;
        self.shot = None;
    }

    /// The next frame that triggers. Afterwards the comparator has seen all frames before it and before `end`.
    fn search(&mut self, first: u64, end: u64, bytes: &[u8]) -> Option<u64> {
        let (from, to) = (self.scanned.max(first) - first, end - first);
        let (from, to) = (from.min(to) as usize, to as usize);
        let found = match &mut self.watch {
            Watch::Level { probe, fire } => probe.first(bytes, from, to, *fire).map(|at| first + at as u64),
            Watch::Edge { probe, arm, fire, armed } => {
                let mut from = from;
                if !*armed && let Some(at) = probe.first(bytes, from, to, *arm) {
                    *armed = true;
                    from = at + 1;
                }
                let hit = if *armed { probe.first(bytes, from, to, *fire) } else { None };
                *armed &= hit.is_none();
                hit.map(|at| first + at as u64)
            }
            Watch::External { calls, waiting } => {
                calls.drain(waiting);
                let clock = self.clock;
                let frame_of = |at: Instant| match clock {
                    Some((start, rate)) => rate.frames_after(at - start).0,
                    None => end - 1,
                };
                let ignored = waiting.iter().take_while(|at| frame_of(**at) < self.held_off).count();
                self.missed.ignored_calls += ignored as u64;
                waiting.drain(..ignored);
                let hit = waiting.first().map(|at| frame_of(*at)).filter(|frame| *frame < end);
                if hit.is_some() {
                    waiting.remove(0);
                }
                hit
            }
        };
        self.scanned = self.scanned.max(found.map_or(end, |frame| frame + 1));
        found
    }

    /// Shows the comparator the frames of a shot and ignores its triggers.
    fn look_on(&mut self, first: u64, until: u64, end: u64, bytes: &[u8]) {
        match &mut self.watch {
            Watch::Level { .. } => {}
            Watch::Edge { probe, arm, fire, armed } => {
                let (from, to) = (self.scanned.clamp(first, end) - first, until - first);
                if let Some(passed) = probe.last(bytes, from as usize, to as usize, [*arm, *fire]) {
                    *armed = passed == 0;
                }
            }
            Watch::External { calls, waiting } if self.clock.is_none() => {
                calls.drain(waiting);
                self.missed.ignored_calls += waiting.len() as u64;
                waiting.clear();
            }
            Watch::External { .. } => {}
        }
        self.scanned = self.scanned.max(until);
    }
}

/// Most frames of a shot: 10¹⁵, days of the fastest converter.
const LONGEST: u64 = 1_000_000_000_000_000;

/// The tests of a trigger on samples of this layout.
fn watch(trigger: Trigger, layout: Layout) -> Result<Watch, TriggerError> {
    let (smallest, largest) = Level::range(layout);
    let probe = |channel| {
        if channel < layout.channels() {
            return Ok(Probe::new(layout, channel));
        }
        let last = layout.channels() - 1;
        Err(TriggerError(format!("the trigger's channel ch{channel} does not exist: write ch0 to ch{last}")))
    };
    let possible = |test: Test| match test {
        Test::AtLeast(least) => least <= largest,
        Test::AtMost(most) => most >= smallest,
    };
    let never = || {
        TriggerError(format!(
            "no sample of {layout} can fulfil the trigger {trigger}: write levels between {smallest}cnt and {largest}cnt"
        ))
    };
    // The next value that a sample can have beyond a level: a whole number, except in floating point.
    let floating = layout.container() == hairspring_ring::layout::Container::F32;
    let above =
        |level: f64| Test::AtLeast(if floating { f64::from((level as f32).next_up()) } else { level.floor() + 1.0 });
    let below =
        |level: f64| Test::AtMost(if floating { f64::from((level as f32).next_down()) } else { level.ceil() - 1.0 });
    match trigger {
        Trigger::Level { channel, side, level } => {
            let level = level.counts(layout);
            let fire = if side == Side::Above { above(level) } else { below(level) };
            if possible(fire) { Ok(Watch::Level { probe: probe(channel)?, fire }) } else { Err(never()) }
        }
        Trigger::Edge { channel, slope, level, hysteresis } => {
            let (level, width) = (level.counts(layout), hysteresis.distance(layout));
            let (arm, fire) = match slope {
                Slope::Rising => (below(level - width), Test::AtLeast(level)),
                Slope::Falling => (above(level + width), Test::AtMost(level)),
            };
            let probe = probe(channel)?;
            let possible = possible(arm) && possible(fire);
            if possible { Ok(Watch::Edge { probe, arm, fire, armed: false }) } else { Err(never()) }
        }
        Trigger::External => Ok(Watch::External { calls: ExternalTrigger::new(), waiting: ExternalTrigger::room() }),
    }
}

#[cfg(test)]
mod tests;
