//! The shutter of a camera: opens, waits half of the exposure, reads an instrument, waits out the exact rest, closes. A
//! supervisor, more urgent, orders the exposures and aborts one that hangs.
//!
//! ```text
//!            open ─── wait ─── half: read ─── wait ─── close            supervisor (5): order, wait with a limit
//! sequence (10) │◄───────── the exposure ──────────►│                       too late: close, kill the sequence
//! ```
//! Both waits of the sequence end at absolute moments, counted from the opening: however long the reading takes, the
//! shutter closes on time, unless it takes longer than the other half. The opened shutter is a value that closes when
//! it is dropped, so an aborted sequence cannot leave it open: a killed task unwinds.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use hairspring_exec_core::{Bits, Priority, Urgency};
use hairspring_machine::{Instant, Nanos};

use super::run::{Failed, ProgramRun, priority};
use crate::errors::BitsError;
use crate::{Backend, Create, ExecConfig, Executive, Limit, RunLimit, Services, TaskCtx};

const SUPERVISOR: Priority = priority(5);
const SEQUENCE: Priority = priority(10);
const MAIL: Urgency = Urgency::ALL[0];
/// The event: an exposure is complete.
const COMPLETE: u32 = 1;
/// The blades come to rest between two exposures; an aborted sequence has unwound by then.
const REST: Nanos = Nanos::from_millis(10);
/// Time limit of a run; it is several times what the exposures need.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Lengths of the exposures and of the instrument's readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutterSetup {
    /// How long each exposure lasts.
    pub exposure: Nanos,
    /// How long after its end the supervisor aborts it.
    pub limit: Nanos,
    /// How long the instrument takes in each exposure.
    pub readings: Vec<Nanos>,
}

impl Default for ShutterSetup {
    /// Three exposures; in the second one the instrument hangs.
    fn default() -> Self {
        let (usual, hangs) = (Nanos::from_micros(300), Nanos::from_millis(60));
        Self { exposure: Nanos::from_millis(20), limit: Nanos::from_millis(5), readings: vec![usual, hangs, usual] }
    }
}

/// One exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutterExposure {
    /// When the shutter opened, from the beginning of the run.
    pub opened: Nanos,
    /// When it closed.
    pub closed: Nanos,
    /// Whether the supervisor closed it.
    pub aborted: bool,
}

impl ShutterExposure {
    /// How long it was open.
    pub fn measured(&self) -> Nanos {
        self.closed - self.opened
    }
}

/// The exposures as they happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutterReport {
    /// The requested length of each exposure.
    pub wanted: Nanos,
    /// The exposures, in order.
    pub exposures: Vec<ShutterExposure>,
}

impl fmt::Display for ShutterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, cells: [&str; 6]| {
            let [number, opened, closed, measured, off, end] = cells;
            writeln!(f, "{number:<10} {opened:>12} {closed:>12} {measured:>12} {off:>12}  {end}")
        };
        row(f, ["exposure", "open at", "closed at", "exposed for", "off by", "end"])?;
        for (place, exposure) in self.exposures.iter().enumerate() {
            let text = |span: Nanos| span.to_string();
            let measured = exposure.measured();
            let (opened, closed, off) = (text(exposure.opened), text(exposure.closed), text(measured - self.wanted));
            let end = if exposure.aborted { "aborted by the supervisor" } else { "complete" };
            row(f, [&(place + 1).to_string(), &opened, &closed, &text(measured), &off, end])?;
        }
        Ok(())
    }
}

/// A movement of the blades.
struct Movement {
    at: Instant,
    aborted: bool,
}

/// The device. Any task may open or close it; a second close has no effect.
struct Shutter {
    open: AtomicBool,
    movements: Sender<Movement>,
}

impl Shutter {
    /// Opens the shutter; it closes when the returned value is dropped.
    fn open<'s>(&'s self, ctx: &'s TaskCtx<'s>) -> OpenShutter<'s> {
        let at = ctx.now();
        // SeqCst here and below: all tasks must see one order of movements, and speed does not matter here.
        self.open.store(true, Ordering::SeqCst);
        let _ = self.movements.send(Movement { at, aborted: false });
        OpenShutter { shutter: self, ctx, at }
    }

    fn close(&self, at: Instant, aborted: bool) {
        if self.open.swap(false, Ordering::SeqCst) {
            let _ = self.movements.send(Movement { at, aborted });
        }
    }
}

/// The shutter while it is open.
struct OpenShutter<'s> {
    shutter: &'s Shutter,
    ctx: &'s TaskCtx<'s>,
    at: Instant,
}

impl Drop for OpenShutter<'_> {
    fn drop(&mut self) {
        self.shutter.close(self.ctx.now(), false);
    }
}

/// An order of the supervisor.
#[derive(Clone, Copy)]
struct Order {
    exposure: Nanos,
    reading: Nanos,
}

/// Runs the sequence and its supervisor until all exposures are over.
///
/// # Errors
/// The back-end is unavailable here.
pub fn run(backend: Backend, setup: &ShutterSetup, trace: Option<usize>) -> Result<ProgramRun<ShutterReport>, Failed> {
    let setup = setup.clone();
    let config = ExecConfig { message_bytes: size_of::<Order>(), trace, ..ExecConfig::default() };
    let mut executive = Executive::new(backend, &config)?;
    let (movements, moved) = mpsc::channel();
    let shutter = Arc::new(Shutter { open: AtomicBool::new(false), movements });
    let events = executive.events(0)?;
    let begin = executive.now();

    let device = Arc::clone(&shutter);
    let sequence = executive.mail_task("sequence", SEQUENCE, [1, 0, 0, 0], move |ctx, _, order: Order| {
        let open = device.open(ctx);
        let half = Nanos::new(order.exposure.count() / 2);
        let _ = ctx.delay_until(open.at + half);
        ctx.work(order.reading);
        let _ = ctx.delay_until(open.at + order.exposure);
        drop(open);
        let _ = ctx.signal_events(events, COMPLETE);
    })?;

    let wanted = setup.exposure;
    let budget = (wanted + setup.limit + REST) * i64::try_from(setup.readings.len()).unwrap_or(1);
    let supervisor = executive.task("supervisor", SUPERVISOR, move |ctx| {
        for &reading in &setup.readings {
            let latest = ctx.now() + wanted + setup.limit;
            let _ = ctx.send(sequence, MAIL, Order { exposure: wanted, reading });
            if ctx.wait_events(events, Bits::All(COMPLETE), true, Limit::Until(latest)) == Err(BitsError::TimedOut) {
                // Close the shutter first, then kill the task.
                shutter.close(ctx.now(), true);
                let _ = ctx.kill(sequence.id());
            }
            let _ = ctx.delay(REST);
        }
    })?;
    executive.trigger(supervisor)?;

    let finish = executive.run(RunLimit::For(budget + PATIENCE));
    let movements: Vec<Movement> = moved.try_iter().collect();
    let pairs = movements.chunks_exact(2).map(|pair| ShutterExposure {
        opened: (pair[0].at - begin),
        closed: (pair[1].at - begin),
        aborted: pair[1].aborted,
    });
    Ok(ProgramRun { report: ShutterReport { wanted, exposures: pairs.collect() }, finish, trace: executive.trace() })
}
