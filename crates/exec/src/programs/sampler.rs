//! A periodic sampler: reads an instrument at `t0 + n·p` and mails each sample to a logger, which is less urgent and
//! sometimes slow. The program counts samples that are late, missed or lost.
//!
//! ```text
//! timer ──due──► sampler (10) ──sample──► logger (20) ──► a file
//!  each p         reads, stamps            writes, sometimes flushes
//! ```
//! The mailbox between the two buffers the samples that are taken during a flush. If it is too small, the program loses
//! samples and counts them; the sampler stays on time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use hairspring_exec_core::{Priority, Urgency};
use hairspring_machine::{Instant, Nanos};

use super::run::{Failed, ProgramRun, priority};
use crate::{Backend, Create, ExecConfig, Executive, RunLimit, Services};

const SAMPLER: Priority = priority(10);
const LOGGER: Priority = priority(20);
/// The only kind of message in this program.
const MAIL: Urgency = Urgency::ALL[0];
/// From the creation of the executive to the first sample.
const LEAD: Nanos = Nanos::from_millis(5);
/// Periods that may wait for the sampler.
const DUE_MOST: u16 = 4;
/// Time limit of a run; it is several times what the samples need.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// Number of samples, period, and duration of each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerSetup {
    /// How many samples.
    pub samples: u32,
    /// The period: one sample each.
    pub period: Nanos,
    /// How long it takes to read the instrument.
    pub reading: Nanos,
    /// How long it takes to write a sample.
    pub writing: Nanos,
    /// How long a flush takes; the logger flushes after each [`FLUSH_EACH`] samples.
    pub flushing: Nanos,
    /// Samples that may wait for the logger.
    pub mailbox: u16,
}

/// Samples from one flush to the next.
pub const FLUSH_EACH: u32 = 50;

impl Default for SamplerSetup {
    fn default() -> Self {
        Self {
            samples: 200,
            period: Nanos::from_millis(1),
            reading: Nanos::from_micros(20),
            writing: Nanos::from_micros(50),
            flushing: Nanos::from_millis(4),
            mailbox: 8,
        }
    }
}

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was due.
    pub due: Instant,
    /// When it was taken.
    pub stamp: Instant,
    /// The value.
    pub value: i32,
}

/// The samples, and how many were late or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerReport {
    /// The period: one sample each.
    pub period: Nanos,
    /// The samples that were written, in order.
    pub samples: Vec<Sample>,
    /// Samples that found the logger's mailbox full.
    pub lost: u64,
    /// Periods that found the sampler's mailbox full.
    pub skipped: u64,
    /// Periods that had no run of the timer's procedure.
    pub overruns: u64,
}

impl SamplerReport {
    /// How late the samples were taken, the least first.
    pub fn lateness(&self) -> Vec<Nanos> {
        let mut late: Vec<Nanos> = self.samples.iter().map(|sample| sample.stamp - sample.due).collect();
        late.sort();
        late
    }
}

impl fmt::Display for SamplerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.lateness();
        writeln!(f, "{:<10} {} written, one each {}", "samples", late.len(), self.period)?;
        if let (Some(min), Some(median), Some(max)) = (late.first(), late.get(late.len() / 2), late.last()) {
            writeln!(f, "{:<10} min {min}, median {median}, max {max}", "lateness")?;
        }
        let Self { lost, skipped, overruns, .. } = self;
        writeln!(f, "{:<10} {lost} on the way to the logger, {skipped} before the sampler; {overruns} overruns", "lost")
    }
}

/// The instrument: a triangle between −100 and 100.
fn read(number: u32) -> i32 {
    let step = i32::try_from(number % 400).unwrap_or(0);
    if step < 200 { step - 100 } else { 300 - step }
}

/// Runs the sampler and the logger until all samples are taken.
///
/// # Errors
/// The back-end is unavailable here, or the setup asks for larger mailboxes than the executive has.
pub fn run(backend: Backend, setup: &SamplerSetup, trace: Option<usize>) -> Result<ProgramRun<SamplerReport>, Failed> {
    let setup = setup.clone();
    let (samples, period) = (setup.samples, setup.period);
    let config = ExecConfig { message_bytes: size_of::<Sample>(), trace, ..ExecConfig::default() };
    let mut executive = Executive::new(backend, &config)?;

    // The logger is least urgent: it may use the file system, allocate, and take its time.
    let (file, written) = mpsc::channel();
    let mut count = 0;
    let logger = executive.mail_task("logger", LOGGER, [setup.mailbox, 0, 0, 0], move |ctx, _, sample: Sample| {
        ctx.work(setup.writing);
        // The other end is read after the run.
        let _ = file.send(sample);
        count += 1;
        if count % FLUSH_EACH == 0 {
            ctx.work(setup.flushing);
        }
    })?;

    // The sampler is urgent and short. It never waits for the logger: samples that do not fit into the mailbox are lost
    // and counted.
    let lost = Arc::new(AtomicU64::new(0));
    let losses = Arc::clone(&lost);
    let mut taken = 0;
    let sampler = executive.mail_task("sampler", SAMPLER, [DUE_MOST, 0, 0, 0], move |ctx, _, due: Instant| {
        let stamp = ctx.now();
        ctx.work(setup.reading);
        let value = read(taken);
        taken += 1;
        if ctx.send(logger, MAIL, Sample { due, stamp, value }).is_err() {
            // Relaxed: read after the run, which ends after all of its tasks.
            losses.fetch_add(1, Ordering::Relaxed);
        }
    })?;

    // The timer's procedure runs above all tasks, so it is as short as possible. It stops its own timer after the last
    // sample; from then on no event is pending, and the run ends when the logger is done.
    let (skipped, overruns) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (skips, missed) = (Arc::clone(&skipped), Arc::clone(&overruns));
    let mut expiries = 0;
    let timer = executive.timer("period", move |ctx, expiry| {
        missed.fetch_add(expiry.missed, Ordering::Relaxed);
        if ctx.send(sampler, MAIL, expiry.deadline).is_err() {
            skips.fetch_add(1, Ordering::Relaxed);
        }
        expiries += 1;
        if expiries == samples {
            let _ = ctx.stop_timer(ctx.timer());
        }
    })?;
    executive.start_periodic(timer, executive.now() + LEAD, period)?;

    let finish = executive.run(RunLimit::For(LEAD + period * i64::from(samples) + PATIENCE));
    let report = SamplerReport {
        period,
        samples: written.try_iter().collect(),
        lost: lost.load(Ordering::Relaxed),
        skipped: skipped.load(Ordering::Relaxed),
        overruns: overruns.load(Ordering::Relaxed),
    };
    Ok(ProgramRun { report, finish, trace: executive.trace() })
}
