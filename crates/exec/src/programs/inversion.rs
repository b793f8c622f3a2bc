//! Priority inversion, shown and cured. A low task owns a resource; a high task needs the resource and waits; a middle
//! task, which does not use the resource, preempts the low task. So the high task waits for the middle one.
//!
//! ```text
//!                 0       0.5       1                 2 ms
//! high   (10)               needs R ──waits ...
//! middle (20)                       runs for 10 ms ...
//! low    (30)     owns R ...................│             1 ms of its work is left when the middle one starts
//! ```
//! With [`ResourceProtocol::None`] the high task waits for the rest of the low task *and* for all of the middle task.
//! With [`ResourceProtocol::Inherit`] the low task runs at the high task's priority while the high task waits; with
//! [`ResourceProtocol::Ceiling`] from the moment it owns the resource. Either way the high task waits only for the rest
//! of the low task.
//!
//! On several CPUs the middle task runs on another CPU than the low task, so little inversion shows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use hairspring_exec_core::{Priority, ResourceId, ResourceProtocol, Urgency};
use hairspring_machine::{Instant, Nanos};

use super::run::{Failed, ProgramRun, priority};
use crate::{Backend, Create, ExecConfig, Executive, Limit, RunLimit, Services};

const HIGH: Priority = priority(10);
const MIDDLE: Priority = priority(20);
const LOW: Priority = priority(30);
/// Priority of the director, which starts each scene when no other task is ready.
const DIRECTOR: Priority = priority(40);
const MAIL: Urgency = Urgency::ALL[0];
/// From the moment when the low task owns the resource to the moments when the high task needs it and the middle task
/// starts.
const HIGH_COMES: Nanos = Nanos::from_micros(500);
const MIDDLE_COMES: Nanos = Nanos::from_millis(1);
/// How long the high task uses the resource.
const HIGH_WORKS: Nanos = Nanos::from_micros(100);
/// Time limit of a run; it is several times what the scenes need.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Lengths of the low and middle tasks' work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InversionSetup {
    /// How long the low task needs the resource.
    pub low: Nanos,
    /// How long the middle task runs.
    pub middle: Nanos,
}

impl Default for InversionSetup {
    fn default() -> Self {
        Self { low: Nanos::from_millis(2), middle: Nanos::from_millis(10) }
    }
}

/// The waits that the scenes showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InversionReport {
    /// For each protocol, how long the high task waited from needing the resource to owning it.
    pub waits: Vec<(ResourceProtocol, Nanos)>,
    /// The rest of the low task's work, and the middle task's, which an inversion adds.
    pub expected: (Nanos, Nanos),
}

impl InversionReport {
    /// How long the high task waited with this protocol.
    pub fn waited(&self, protocol: ResourceProtocol) -> Option<Nanos> {
        self.waits.iter().find(|(other, _)| *other == protocol).map(|&(_, waited)| waited)
    }
}

impl fmt::Display for InversionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<10} {:>12}", "protocol", "high waited")?;
        for (protocol, waited) in &self.waits {
            let name = match protocol {
                ResourceProtocol::None => "none",
                ResourceProtocol::Inherit => "inherit",
                ResourceProtocol::Ceiling(_) => "ceiling",
            };
            writeln!(f, "{name:<10} {:>12}", waited.to_string())?;
        }
        let (rest, middle) = self.expected;
        writeln!(
            f,
            "{:<10} low has {rest} of work left when high needs R; an inversion adds the {middle} of middle",
            "expected"
        )
    }
}

/// Plays one scene for each protocol.
///
/// # Errors
/// The back-end is unavailable here.
pub fn run(
    backend: Backend,
    setup: &InversionSetup,
    trace: Option<usize>,
) -> Result<ProgramRun<InversionReport>, Failed> {
    let InversionSetup { low: low_works, middle: middle_works } = *setup;
    let mut executive = Executive::new(backend, &ExecConfig { trace, ..ExecConfig::default() })?;
    let protocols = [ResourceProtocol::None, ResourceProtocol::Inherit, ResourceProtocol::Ceiling(HIGH)];
    let mut resources: Vec<ResourceId> = Vec::new();
    for protocol in protocols {
        resources.push(executive.resource(protocol)?);
    }
    let done = executive.semaphore(0, 3)?;
    // The scene that is played. Relaxed: the director sets it before it starts the scene's tasks, and the start orders
    // the two.
    let scene = Arc::new(AtomicUsize::new(0));
    let stage = || {
        let (scene, resources) = (Arc::clone(&scene), resources.clone());
        move || resources[scene.load(Ordering::Relaxed)]
    };

    let (told, waits) = mpsc::channel();
    let resource = stage();
    let high = executive.mail_task("high", HIGH, [1, 0, 0, 0], move |ctx, _, needed: Instant| {
        let Ok(held) = ctx.reserve(resource(), Limit::Forever) else { return };
        let waited = ctx.now() - needed;
        ctx.work(HIGH_WORKS);
        drop(held);
        let _ = told.send(waited);
        let _ = ctx.signal_semaphore(done);
    })?;

    let middle = executive.task("middle", MIDDLE, move |ctx| {
        ctx.work(middle_works);
        let _ = ctx.signal_semaphore(done);
    })?;

    let high_comes = executive.timer("high comes", move |ctx, expiry| {
        let _ = ctx.send(high, MAIL, expiry.deadline);
    })?;
    let middle_comes = executive.timer("middle comes", move |ctx, _| {
        let _ = ctx.trigger(middle);
    })?;

    let resource = stage();
    let low = executive.task("low", LOW, move |ctx| {
        let Ok(held) = ctx.reserve(resource(), Limit::Forever) else { return };
        let begin = ctx.now();
        let _ = ctx.start_timer(high_comes, begin + HIGH_COMES);
        let _ = ctx.start_timer(middle_comes, begin + MIDDLE_COMES);
        ctx.work(low_works);
        drop(held);
        let _ = ctx.signal_semaphore(done);
    })?;

    let director = executive.task("director", DIRECTOR, move |ctx| {
        for number in 0..protocols.len() {
            scene.store(number, Ordering::Relaxed);
            let _ = ctx.trigger(low);
            for _actor in 0..3 {
                let _ = ctx.wait_semaphore(done, Limit::Forever);
            }
        }
    })?;
    executive.trigger(director)?;

    let scenes = (low_works + middle_works + HIGH_WORKS) * 3;
    let finish = executive.run(RunLimit::For(scenes + PATIENCE));
    let waits = protocols.into_iter().zip(waits.try_iter()).collect();
    let report = InversionReport { waits, expected: (low_works - HIGH_COMES, middle_works) };
    Ok(ProgramRun { report, finish, trace: executive.trace() })
}
