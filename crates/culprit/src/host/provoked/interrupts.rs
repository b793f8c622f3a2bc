//! Interrupts, softirqs and kernel workers, caused on the CPU of a polling thread by another CPU, a device or a timer.
//!
//! The provoker knows the time of its deed: between two stamps around its call, or the time for which it set a timer.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hairspring_machine::{Cpu, Host, Instant, Machine, Nanos, Policy};
use rustix::fs::OFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use testing::skip;

use super::{PAUSE, Right, Stretch, Watched, cpu, judge_gaps, other, pin, poll, provoke, times};
use crate::host::tests::now;
use crate::{Context, Culprit, CulpritKind, Softirq};

/// A priority above all ordinary tasks, so that these do not disturb it.
const POLLER: Policy = Policy::Fifo(1);

fn kind(kind: CulpritKind) -> impl Fn(&Culprit) -> bool {
    move |culprit| culprit.kind() == kind
}

#[test]
fn a_storm_of_timers_is_blamed_on_the_timer() {
    const TEST: &str = "a_storm_of_timers_is_blamed_on_the_timer";
    /// Timers pending at once, each a file.
    const TIMERS: usize = 200;
    const EVERY: Nanos = Nanos::from_millis(1);
    /// Tolerance for the interrupt's time: the clock event runs by another clock, so it can also come early.
    const COMES: Nanos = Nanos::from_micros(50);
    let cpu = cpu();
    let Some(mut watched) = Watched::open(TEST, cpu, POLLER) else { return };
    let (mut gaps, mut provocations) = (Vec::new(), Vec::new());
    for _ in 0..times(3) {
        let first = now() + Nanos::from_millis(5);
        let at: Vec<Instant> = (0..TIMERS).map(|number| first + EVERY * number as i64).collect();
        // A timer expires on the CPU on which it was set, as long as that CPU has work.
        let timers: Result<Vec<OwnedFd>, _> = at.iter().map(|&at| timer(at)).collect();
        let timers = timers.expect("timers may be made");
        let end = at[TIMERS - 1] + COMES;
        gaps.extend(poll(|at| at >= end));
        drop(timers);
        std::thread::sleep(PAUSE);
        provocations.extend(at.into_iter().map(|at| Stretch { from: at - COMES, to: at + COMES }));
    }
    let right = Right { all: kind(CulpritKind::Timer), named: kind(CulpritKind::Timer) };
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &right);
}

/// A timer that expires once, at this time.
fn timer(at: Instant) -> rustix::io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let [once, second] = [Nanos::ZERO, at.as_monotonic()]
        .map(|time| Timespec { tv_sec: time.count() / 1_000_000_000, tv_nsec: time.count() % 1_000_000_000 });
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: once, it_value: second })?;
    Ok(timer)
}

#[test]
fn interrupts_of_a_disk_are_blamed_on_its_line() {
    const TEST: &str = "interrupts_of_a_disk_are_blamed_on_its_line";
    let disk = match Disk::open() {
        Ok(disk) => disk,
        Err(error) => return skip(TEST, format!("failed to read past the page cache in /var/tmp: {error}")),
    };
    let Some((irq, cpu, reader)) = disk.line() else {
        return skip(TEST, "no interrupt line counts reads of /var/tmp on another CPU than the one that reads");
    };
    let Some(mut watched) = Watched::open(TEST, cpu, POLLER) else { return };
    let (gaps, provocations) = provoke(reader, || disk.read());
    let by_line =
        move |culprit: &Culprit| matches!(culprit, Culprit::Context(Context::Interrupt { irq: of, .. }) if *of == irq);
    // On a disk with one queue the interrupt leaves the end of the request to a softirq.
    let block = |culprit: &Culprit| *culprit == Culprit::Context(Context::Softirq(Softirq(4)));
    let right = Right { all: |culprit: &Culprit| by_line(culprit) || block(culprit), named: by_line };
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &right);
}

/// A file that is read past the page cache, so that each read reaches the disk.
struct Disk {
    path: PathBuf,
    file: File,
}

/// Bytes of one read, and an alignment in memory that suits the disk.
const BLOCK: usize = 4096;
const BLOCKS: u64 = 256;

impl Disk {
    fn open() -> std::io::Result<Self> {
        let path = PathBuf::from(format!("/var/tmp/hairspring-provoked-{}", std::process::id()));
        let mut whole = File::create(&path)?;
        whole.write_all(&vec![1; BLOCK * BLOCKS as usize]).and_then(|()| whole.sync_all())?;
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(direct).open(&path);
        let disk = Self { file: file?, path };
        disk.read_block(0)?;
        Ok(disk)
    }

    fn read_block(&self, number: u64) -> std::io::Result<()> {
        let mut room = [0; 2 * BLOCK];
        let begin = room.as_ptr().align_offset(BLOCK);
        self.file.read_exact_at(&mut room[begin..begin + BLOCK], number * BLOCK as u64)
    }

    fn read(&self) {
        // A failed attempt provokes nothing, which the count shows.
        let _ = self.read_block(now().as_monotonic().count().unsigned_abs() % BLOCKS);
    }

    /// The disk's interrupt line, the CPU that it interrupts, and another CPU that can read.
    fn line(&self) -> Option<(u32, Cpu, Cpu)> {
        const READS: u64 = 64;
        Host.affinity().0.into_iter().find_map(|reader| {
            pin(reader);
            let before = interrupts()?;
            (0..READS).for_each(|_| self.read());
            let after = interrupts()?;
            let grown =
                after.into_iter().map(|(place, count)| (place, count - before.get(&place).copied().unwrap_or(0)));
            let ((irq, cpu), count) = grown.max_by_key(|(_, count)| *count)?;
            (count >= READS && cpu != reader).then_some((irq, cpu, reader))
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Interrupts of each device on each CPU.
fn interrupts() -> Option<BTreeMap<(u32, Cpu), u64>> {
    let text = std::fs::read_to_string("/proc/interrupts").ok()?;
    let mut lines = text.lines();
    let cpus: Vec<Cpu> =
        lines.next()?.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok().map(Cpu)).collect();
    let mut counts = BTreeMap::new();
    for (irq, rest) in lines.filter_map(|line| line.split_once(':')) {
        let Ok(irq) = irq.trim().parse::<u32>() else { continue };
        for (cpu, count) in cpus.iter().zip(rest.split_whitespace()) {
            counts.insert((irq, *cpu), count.parse().ok()?);
        }
    }
    Some(counts)
}

#[test]
fn what_comes_from_the_network_is_blamed_on_its_softirq() {
    const TEST: &str = "what_comes_from_the_network_is_blamed_on_its_softirq";
    const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";
    let cpu = cpu();
    let Some(sender) = other(TEST, cpu) else { return };
    let Some(mut watched) = Watched::open(TEST, cpu, POLLER) else { return };
    let mask = format!("{:x}{}", 1_u32 << (cpu.0 % 32), ",00000000".repeat(cpu.0 as usize / 32));
    let _steered = match Steered::set(STEERING, &mask) {
        Ok(steered) => steered,
        Err(error) => return skip(TEST, format!("failed to write {STEERING}: {error}")),
    };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("the loopback network is there");
    socket.connect(socket.local_addr().expect("it has an address")).expect("it may send to itself");
    socket.set_nonblocking(true).expect("it may");
    let (gaps, provocations) = provoke(sender, || {
        let _ = socket.send(&[1; 64]);
        // The interrupt arrives when the other CPU has delivered it.
        let end = now() + Nanos::from_micros(500);
        while socket.recv(&mut [0; 64]).is_err() && now() < end {}
    });
    // The sender's CPU calls the other one, which then delivers.
    let delivery = |culprit: &Culprit| *culprit == Culprit::Context(Context::Softirq(Softirq(3)));
    let call = kind(CulpritKind::FunctionCall);
    let right = Right { all: |culprit: &Culprit| delivery(culprit) || call(culprit), named: delivery };
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &right);
}

/// A file of the kernel with another value, until it is dropped.
struct Steered {
    path: &'static Path,
    old: String,
}

impl Steered {
    fn set(path: &'static str, value: &str) -> std::io::Result<Self> {
        let old = std::fs::read_to_string(path)?;
        std::fs::write(path, value)?;
        Ok(Self { path: Path::new(path), old })
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        std::fs::write(self.path, &self.old).expect("the old value may be written back");
    }
}

#[test]
fn a_kernel_worker_is_blamed_by_its_function() {
    const TEST: &str = "a_kernel_worker_is_blamed_by_its_function";
    /// A write to this file makes a worker on each CPU add up that CPU's statistics.
    const STATISTICS: &str = "/proc/sys/vm/stat_refresh";
    let cpu = cpu();
    let Some(caller) = other(TEST, cpu) else { return };
    let mut file = match OpenOptions::new().write(true).open(STATISTICS) {
        Ok(file) => file,
        Err(error) => return skip(TEST, format!("failed to open {STATISTICS}: {error}")),
    };
    let Some(mut watched) = Watched::open(TEST, cpu, Policy::Other) else { return };
    // Otherwise the worker would wait for the end of this thread's time slice.
    rustix::process::setpriority_process(None, 19).expect("a thread may be nicer");
    let (gaps, provocations) = provoke(caller, || {
        let _ = file.write_all(b"1");
    });
    let function =
        |culprit: &Culprit| matches!(culprit, Culprit::Worker(_, Some(name)) if **name == *"refresh_vm_stats");
    // The other CPU's interrupt (reschedule or function call), and the worker before and after its work.
    let message = [kind(CulpritKind::Reschedule), kind(CulpritKind::FunctionCall), kind(CulpritKind::Worker)];
    let all = |culprit: &Culprit| message.iter().any(|is| is(culprit));
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &Right { all, named: function });
}

#[test]
fn a_call_of_another_cpu_is_blamed_on_the_call() {
    const TEST: &str = "a_call_of_another_cpu_is_blamed_on_the_call";
    /// A size that the C library maps and unmaps each time.
    const BYTES: usize = 64 << 20;
    let cpu = cpu();
    let Some(caller) = other(TEST, cpu) else { return };
    let Some(mut watched) = Watched::open(TEST, cpu, POLLER) else { return };
    let (gaps, provocations) = provoke(caller, || {
        let mut memory = vec![0_u8; BYTES];
        memory[0] = 1;
        // This CPU must flush its TLB entry of the page, too.
        drop(std::hint::black_box(memory));
    });
    let right = Right { all: kind(CulpritKind::FunctionCall), named: kind(CulpritKind::FunctionCall) };
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &right);
}
