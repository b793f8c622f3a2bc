//! [`Tracer`]: reads the kernel's records of chosen CPUs.
//!
//! Each CPU has a ring, into which all its tracepoints write, so that records keep their order. The reader is never
//! woken, because a wake-up would be an interrupt on the watched CPU; it drains the rings from time to time. A full
//! ring loses records, and reports it with a [`KernelEvent::Lost`].

use std::io;
use std::time::Duration;

use hairspring_machine::{Cpu, Host, Instant, Machine, Nanos};
use perf_event::events::Tracepoint as TracepointEvent;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use super::missed_switches::{Change, Tasks};
use super::redirect::redirect;
use super::symbols::Symbols;
use super::tracefs::Tracefs;
use super::untraced::Untraced;
use crate::format::{Decoder, Format, SWITCH as SCHED_SWITCH, tracepoints};
use crate::record::{KernelEvent, KernelRecord};

/// Smallest ring to try when larger ones are refused.
const RING_BYTES_LEAST: usize = 64 << 10;
/// Task switches that the self-test provokes.
const SELF_TEST_SLEEPS: usize = 16;

/// The CPUs and records that a [`Tracer`] reads.
#[derive(Clone, Debug)]
pub struct TracerSettings {
    /// The CPUs.
    pub cpus: Vec<Cpu>,
    /// Bytes of each CPU's ring, a power of two; less if the system refuses that much. A record takes about 100 bytes.
    pub ring_bytes: usize,
    /// Whether to read page faults, which slows down a program that maps much memory.
    pub faults: bool,
    /// Whether to read wake-ups and idle states.
    pub wakings: bool,
    /// Whether to read the rare interrupts of hardware: thermal ones, and those of errors. A guest has none.
    pub rare_vectors: bool,
}

impl TracerSettings {
    /// These CPUs, with 4 MiB for each, everything on.
    pub fn of_cpus(cpus: impl IntoIterator<Item = Cpu>) -> Self {
        Self { cpus: cpus.into_iter().collect(), ring_bytes: 4 << 20, faults: true, wakings: true, rare_vectors: true }
    }

    /// All CPUs that are online: for a program whose threads may run anywhere.
    ///
    /// # Errors
    /// `/sys/devices/system/cpu/online` cannot be read.
    pub fn of_all_cpus() -> io::Result<Self> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
        Ok(Self::of_cpus(cpu_list(&text)))
    }
}

/// Reads the kernel's records of some CPUs. Reading ends when it is dropped, which takes the kernel some milliseconds.
pub struct Tracer {
    rings: Vec<CpuRing>,
    decoder: Decoder,
    symbols: Symbols,
    tasks: Tasks,
    missing: Vec<String>,
}

/// The tracepoints of one CPU; the first one owns the ring.
struct CpuRing {
    cpu: Cpu,
    ring: Sampler,
    others: Vec<Counter>,
}

impl Tracer {
    /// Opens the tracepoints on these CPUs and begins to read.
    ///
    /// # Errors
    /// The system refuses: no permission, no tracepoints, too many files.
    pub fn open(settings: &TracerSettings) -> Result<Self, Untraced> {
        let tracefs = Tracefs::open().map_err(Untraced::tracefs)?;
        let mut decoder = Decoder::default();
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for tracepoint in tracepoints(settings) {
            let text = tracefs.format(&tracepoint.path).map_err(Untraced::tracefs)?;
            match text.as_deref().and_then(Format::parse) {
                Some(format) => {
                    found.push((tracepoint.path, format.id));
                    decoder.learn(format, tracepoint.meaning);
                }
                None => missing.push(tracepoint.path),
            }
        }
        if missing.iter().any(|path| path == SCHED_SWITCH) {
            return Err(Untraced { reason: format!("this kernel has no tracepoint {SCHED_SWITCH}"), remedy: None });
        }
        let rings = settings.cpus.iter().map(|&cpu| CpuRing::open(cpu, settings.ring_bytes, &found));
        let rings = rings.collect::<Result<_, _>>()?;
        let mut tracer = Self { rings, decoder, symbols: Symbols::default(), tasks: Tasks::default(), missing };
        tracer.resume().map_err(|error| Untraced::perf("(all)", &error))?;
        Ok(tracer)
    }

    /// Tracepoints that this kernel lacks. Their time counts as that of the interrupted task.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The watched CPUs.
    pub fn cpus(&self) -> Vec<Cpu> {
        self.rings.iter().map(|ring| ring.cpu).collect()
    }

    /// Stops the records until [`resume`](Self::resume). Histories then have a gap: push a [`KernelEvent::Lost`] or
    /// begin new ones.
    ///
    /// # Errors
    /// The system refuses, which is not expected.
    pub fn pause(&mut self) -> io::Result<()> {
        self.rings.iter_mut().try_for_each(CpuRing::pause)
    }

    /// Continues after [`pause`](Self::pause).
    ///
    /// # Errors
    /// The system refuses, which is not expected.
    pub fn resume(&mut self) -> io::Result<()> {
        self.rings.iter_mut().try_for_each(CpuRing::resume)
    }

    /// Passes on all records since the last call, CPU by CPU, each CPU's in order. Returns the time up to which the
    /// records are complete, for [`CpuHistory::known_until`](crate::CpuHistory::known_until).
    pub fn drain(&mut self, mut take: impl FnMut(Cpu, KernelRecord)) -> Instant {
        let until = now();
        for ring in &mut self.rings {
            let mut latest = Instant::from_monotonic(Nanos::new(i64::MIN));
            while let Some(record) = ring.ring.next_record() {
                let bytes = record.to_contiguous();
                let event = match record.ty() {
                    SAMPLE => sample(&bytes).and_then(|(at, raw)| {
                        let event = self.decoder.decode(raw, |address| self.symbols.name(address))?;
                        Some(KernelRecord { at, event })
                    }),
                    SWITCH => {
                        change(record.misc(), &bytes).and_then(|(at, change)| self.tasks.missed(ring.cpu, at, change))
                    }
                    LOST | LOST_SAMPLES => Some(KernelRecord { at: latest, event: KernelEvent::Lost }),
                    _ => None,
                };
                if let Some(event) = event {
                    latest = event.at;
                    self.tasks.note(ring.cpu, &event);
                    take(ring.cpu, event);
                }
            }
        }
        until
    }

    /// Provokes task switches between its own stamps, and searches the records for each. Drops the records read before.
    /// The calling thread must be pinned to one of the CPUs.
    ///
    /// # Errors
    /// A switch has no record between its stamps: then the kernel's stamps are not on this clock.
    pub fn self_test(&mut self) -> Result<(), Untraced> {
        self.drain(|_, _| ());
        let own = own_thread();
        let mut sleeps = Vec::with_capacity(SELF_TEST_SLEEPS);
        for _ in 0..SELF_TEST_SLEEPS {
            let from = now();
            std::thread::sleep(Duration::from_nanos(1));
            sleeps.push((from, now()));
        }
        let mut records = Vec::new();
        self.drain(|_, record| match record.event {
            KernelEvent::Switch { from, to, .. } if from.pid == own || to.pid == own => records.push(record.at),
            _ => {}
        });
        if records.is_empty() {
            let reason = format!("the kernel wrote no record of {SELF_TEST_SLEEPS} own sleeps on this CPU");
            return Err(Untraced { reason, remedy: None });
        }
        let inside = |(from, to): &(Instant, Instant)| records.iter().filter(|&at| at >= from && at <= to).count() >= 2;
        let found = sleeps.iter().filter(|sleep| inside(sleep)).count();
        if found < SELF_TEST_SLEEPS {
            return Err(Untraced {
                reason: format!(
                    "only {found} of {SELF_TEST_SLEEPS} own sleeps have the kernel's records between their stamps, so its stamps cannot \
                     be compared with those of this program"
                ),
                remedy: None,
            });
        }
        Ok(())
    }
}

// Types of records.
const SAMPLE: u32 = 9;
const LOST: u32 = 2;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 15;

impl CpuRing {
    fn open(cpu: Cpu, ring_bytes: usize, found: &[(String, u16)]) -> Result<Self, Untraced> {
        let mut ring: Option<Sampler> = None;
        let mut others = Vec::new();
        for (path, id) in found {
            let refused = |error| Untraced::perf(path, &error);
            let counter = event(*id, cpu, ring_bytes, ring.is_none()).map_err(refused)?;
            match &ring {
                None => ring = Some(sampled(counter, *id, cpu, ring_bytes).map_err(refused)?),
                Some(ring) => {
                    redirect(&counter, ring).map_err(refused)?;
                    others.push(counter);
                }
            }
        }
        match ring {
            Some(ring) => Ok(Self { cpu, ring, others }),
            None => Err(Untraced { reason: "this kernel has no tracepoints".to_owned(), remedy: None }),
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.others.iter_mut().rev().try_for_each(Counter::disable)?;
        self.ring.disable()
    }

    fn resume(&mut self) -> io::Result<()> {
        self.ring.enable()?;
        self.others.iter_mut().try_for_each(Counter::enable)
    }
}

/// One tracepoint on one CPU, whose records hold thread, time and raw bytes. One event of each CPU also records task
/// switches in a second form.
fn event(id: u16, cpu: Cpu, ring_bytes: usize, switches: bool) -> io::Result<Counter> {
    Builder::new(TracepointEvent::with_id(u64::from(id)))
        .any_pid()
        .one_cpu(usize::try_from(cpu.0).unwrap_or(usize::MAX))
        .include_kernel()
        .sample_period(1)
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW)
        .sample_id_all(true)
        .context_switch(switches)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(ring_bytes)
        .build()
}

/// The ring of a CPU, as large as the system allows.
fn sampled(counter: Counter, id: u16, cpu: Cpu, ring_bytes: usize) -> io::Result<Sampler> {
    let mut bytes = ring_bytes;
    let mut counter = Some(counter);
    loop {
        let event = match counter.take() {
            Some(counter) => counter,
            None => event(id, cpu, ring_bytes, true)?,
        };
        match event.sampled(bytes) {
            Ok(ring) => return Ok(ring),
            Err(error) if bytes <= RING_BYTES_LEAST => return Err(error),
            Err(_) => bytes /= 2,
        }
    }
}

/// Time and raw bytes of a sample: `u32 pid, tid; u64 time; u32 size; char raw[size]`.
fn sample(bytes: &[u8]) -> Option<(Instant, &[u8])> {
    let size = usize::try_from(word(bytes, 16)?).ok()?;
    Some((time(bytes, 8)?, bytes.get(20..20 + size)?))
}

/// A task switch, as written by the leaving task and again by the arriving one:
/// `u32 other_pid, other_tid; u32 pid, tid; u64 time`.
fn change(misc: u16, bytes: &[u8]) -> Option<(Instant, Change)> {
    const OUT: u16 = 1 << 13;
    const PREEMPTED: u16 = 1 << 14;
    let (other, own) = (word(bytes, 4)?, word(bytes, 12)?);
    let (from, to) = if misc & OUT != 0 { (own, other) } else { (other, own) };
    Some((time(bytes, 16)?, Change { from, to, preempted: misc & PREEMPTED != 0 }))
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn time(bytes: &[u8], offset: usize) -> Option<Instant> {
    let at = u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?);
    Some(Instant::from_monotonic(Nanos::new(i64::try_from(at).ok()?)))
}

/// The id of the calling thread, for [`LostTime`](crate::LostTime).
pub fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// `CLOCK_MONOTONIC` now.
fn now() -> Instant {
    Host.monotonic()
}

/// `0-3,8,10-11`.
fn cpu_list(text: &str) -> Vec<Cpu> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().map(Cpu).collect()
}
