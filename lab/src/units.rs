//! A [`SchedulingUnit`] whose events are interrupts of real drivers: from the card's line to the action that serves it.
//!
//! Each interrupt must become one activation: none may be lost or doubled, and the counts must add up. Another thread
//! raises the interrupts and waits until each is served, so that two never merge.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use hairspring_device::{Device as _, DeviceError, Guarded, Lines, LockFile, Parport, Pci};
use hairspring_station::source::EventSource as _;
use hairspring_station::source::interrupt::{InterruptLine, Interrupts};
use hairspring_station::{Activation, Counts, SchedulingUnit, StageLog, Stages, Stamped, Stop};
use hairspring_time::{Host, Instant, Nanos};

use crate::Lab;
use crate::findings::{Findings, check, text};
use crate::{parallel, pci, shell};

/// Time limit for an activation.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which the test checks that no interrupt arrives unless one is raised.
const QUIET: Duration = Duration::from_millis(20);
/// The driver only counts interrupts: the thread stamps the event when it wakes up.
const BY_WAKE: Stamped = Stamped::Wake;
/// Room for the stages of all activations.
pub(crate) const RING: usize = 1024;

/// Results of a unit.
pub(crate) struct Ran {
    counts: Counts,
    stages: Vec<Stages>,
}

/// Runs a unit in its own thread until `raise` returns; `raise` receives the number of each activation when it is
/// served.
pub(crate) fn ran<'a, 'd>(
    mut unit: SchedulingUnit<'a, 'd, Host>,
    log: StageLog,
    stop: &Stop,
    served: &Receiver<u64>,
    raise: impl FnOnce(&dyn Fn(u64) -> Result<(), String>) -> Result<(), String>,
) -> Result<Ran, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || unit.run().map(|()| unit.counts()));
        let wait = |number: u64| match served.recv_timeout(PATIENCE) {
            Ok(sequence) if sequence == number => Ok(()),
            Ok(sequence) => Err(format!("activation {sequence} where interrupt {number} was raised")),
            Err(_) => Err(format!("interrupt {number} released nothing")),
        };
        let raised = raise(&wait);
        // Gives a surplus interrupt time to arrive before the end.
        std::thread::sleep(QUIET);
        stop.set();
        let ended = thread.join().map_err(|_| "the unit panicked".to_owned())?;
        // The unit's own error is more precise than a missing answer.
        let counts = ended.map_err(text)?;
        raised?;
        Ok(Ran { counts, stages: log.collect() })
    })
}

/// Every interrupt led to one action, in order, and each activation passed its stages in order.
pub(crate) fn judge(
    ran: &Ran,
    raised: &[Instant],
    stamped: Stamped,
    has_device: bool,
    findings: &mut Findings,
) -> Result<(), String> {
    let (count, Ran { counts, stages }) = (raised.len() as u64, ran);
    check(counts.holds(), || format!("the account does not hold: {counts:?}"))?;
    // The next interrupt may come before the end of an action.
    let overrun = counts.overrun;
    let expected = Counts { events: count, activations: count, overrun, ..Counts::default() };
    check(*counts == expected, || format!("{count} were raised: {counts:?}"))?;
    check(stages.len() as u64 == count, || format!("{} stages of {count}", stages.len()))?;
    let since = |later: Instant, earlier: Instant| later.since(earlier).map_err(text);
    let mut spans: [Vec<Nanos>; 3] = Default::default();
    for ((stage, raised), number) in stages.iter().zip(raised).zip(1..) {
        let in_order = match stage.access {
            Some(access) => {
                [stage.event, stage.wake, stage.start, access.requested, access.granted, access.done, stage.end]
            }
            None => [stage.event, stage.wake, stage.start, stage.start, stage.start, stage.start, stage.end],
        };
        let is_in_order = in_order.windows(2).all(|pair| pair[1].since(pair[0]).is_ok_and(|span| span >= Nanos::ZERO));
        check(stage.sequence == number && is_in_order, || format!("activation {number}: {stage:?}"))?;
        check(stage.stamped == stamped && stage.access.is_some() == has_device, || format!("{stage:?}"))?;
        let between = [(stage.wake, *raised), (stage.start, stage.wake), (stage.end, stage.start)];
        for (span, (later, earlier)) in spans.iter_mut().zip(between) {
            span.push(since(later, earlier)?);
        }
    }
    findings.exact("activations", counts.activations);
    for (name, span) in ["raise_to_wake", "wake_to_start", "start_to_end"].into_iter().zip(&spans) {
        findings.measured(name, span);
    }
    Ok(())
}

/// Interrupts of the card, which the action serves through a device with a lock. The action itself raises every other
/// interrupt, after its acknowledgement and while interrupts are masked; it must arrive once they are unmasked.
pub(crate) fn uio(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 200;
    let card = pci::card()?;
    unserved(lab, &card)?;
    let registers = Pci::open(&card, 0, Some(pci::INTERRUPT_ACKNOWLEDGE), Some(pci::INTERRUPT_STATUS), Lines(0));
    let lock = LockFile::of_process().map_err(text)?;
    let device = Guarded::new(Box::new(registers.map_err(text)?), Box::new(lock));
    let (from_action, from_here) = (pci::window()?, pci::window()?);
    let stop = Stop::new().map_err(text)?;
    let source = Interrupts::new(InterruptLine::Uio(pci::interrupt(&card)?), "edu", &lab.timebase, &stop);
    let (tell, served) = mpsc::channel();
    let (tell_raised, raised_within) = mpsc::channel();
    let action = move |activation: &mut Activation<'_, '_, Host>| {
        let status = activation.device(|device| {
            let status = device.read()?;
            device.write(Lines(u32::MAX), status)?;
            Ok(status)
        })?;
        let sequence = activation.event().sequence;
        if u64::from(status.0) != sequence {
            let said = format!("activation {sequence} found the status {status}");
            return Err(DeviceError { attempted: "serve the card".to_owned(), said, remedy: "look at the source" });
        }
        // The receiver may have given up.
        let _ = tell.send(sequence);
        if sequence % 2 == 1 {
            let _ = tell_raised.send(activation.timebase().now());
            from_action.write(pci::INTERRUPT_RAISE, status.0 + 1)?;
        }
        Ok(())
    };
    let (unit, log) = SchedulingUnit::new(Box::new(source), Box::new(action), Some(&device), &lab.timebase, RING);
    let mut raised = Vec::with_capacity(COUNT as usize);
    let ran = ran(unit, log, &stop, &served, |wait| {
        for number in (1..=COUNT).step_by(2) {
            // Gives the unit time to fall asleep.
            std::thread::sleep(Duration::from_millis(1));
            raised.push(lab.timebase.now());
            from_here.write(pci::INTERRUPT_RAISE, number).map_err(text)?;
            wait(number.into())?;
            wait(u64::from(number) + 1)?;
            raised.extend(raised_within.try_recv());
        }
        Ok(())
    })?;
    judge(&ran, &raised, BY_WAKE, true, findings)?;
    // The interrupts that the action raised arrived before it ended.
    let from_action: Vec<bool> = ran.stages.iter().skip(1).step_by(2).map(|stage| stage.overrun).collect();
    check(from_action.len() == COUNT as usize / 2 && !from_action.contains(&false), || format!("{:?}", ran.counts))
}

/// An interrupt from before the wait is delivered once. Unmasking before it is served would double it, because the card
/// still asserts it.
fn unserved(lab: &Lab, card: &str) -> Result<(), String> {
    /// The kernel's count of interrupts.
    fn counted() -> Result<u32, String> {
        let count = std::fs::read_to_string("/sys/class/uio/uio0/event").map_err(text)?;
        count.trim().parse().map_err(text)
    }
    let window = pci::window()?;
    let interrupt = pci::interrupt(card)?;
    let before = counted()?;
    window.write(pci::INTERRUPT_RAISE, 1).map_err(text)?;
    std::thread::sleep(QUIET);
    let stop = Stop::new().map_err(text)?;
    let mut source = Interrupts::new(InterruptLine::Uio(interrupt), "edu", &lab.timebase, &stop);
    let event = source.wait().map_err(text)?;
    std::thread::sleep(QUIET);
    window.write(pci::INTERRUPT_ACKNOWLEDGE, 1).map_err(text)?;
    let new = counted()? - before;
    check(event.is_some_and(|event| (event.sequence, event.missed) == (1, 0)), || format!("{event:?}"))?;
    check(new == 1, || format!("{new} interrupts where one was raised before anybody waited"))?;
    // Leaves the card as found for the next test: interrupts unmasked, and none pending.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || source.wait());
        std::thread::sleep(QUIET);
        stop.set();
        let event = waiting.join().map_err(|_| "the source panicked".to_owned())?.map_err(text)?;
        check(event.is_none() && counted()? - before == 1, || format!("after it was served: {event:?}"))
    })
}

/// The registers of the parallel port, accessed beside the driver that owns it.
pub(crate) struct Registers {
    file: File,
    /// The control register, with the strobe active.
    pub(crate) strobed: u8,
}

impl Registers {
    pub(crate) const DATA: u64 = 0x378;
    pub(crate) const STATUS: u64 = 0x379;
    pub(crate) const CONTROL: u64 = 0x37a;
    pub(crate) const STROBE: u8 = 1;
    /// Enables the port's interrupt.
    pub(crate) const ALLOW: u8 = 0x10;

    pub(crate) fn open() -> Result<Self, String> {
        shell::wait_for("/dev/port")?;
        let file = OpenOptions::new().read(true).write(true).open("/dev/port").map_err(text)?;
        let mut registers = Self { file, strobed: 0 };
        registers.strobed = registers.read(Self::CONTROL).map_err(text)? | Self::STROBE;
        Ok(registers)
    }

    pub(crate) fn read(&self, register: u64) -> std::io::Result<u8> {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, register).map(|()| byte[0])
    }

    pub(crate) fn write(&self, register: u64, byte: u8) -> Result<(), String> {
        self.file.write_all_at(&[byte], register).map_err(text)
    }
}

/// Interrupts of the parallel port. The unit owns the driver; strobes, and reads of the status, which clear QEMU's
/// interrupt, bypass it.
pub(crate) fn parport(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u8 = 100;
    let mut port = Parport::open(Path::new(parallel::PORT), parallel::SAFE).map_err(text)?;
    findings.captured(0);
    // Discards earlier interrupts.
    port.wait_interrupt(Nanos::from_millis(100)).map_err(text)?;
    port.read().map_err(text)?;
    let (registers, status) = (Registers::open()?, Registers::open()?);
    let stop = Stop::new().map_err(text)?;
    let source = Interrupts::new(InterruptLine::Parport(port), "nAck", &lab.timebase, &stop);
    let (tell, served) = mpsc::channel();
    let action = move |activation: &mut Activation<'_, '_, Host>| {
        let read = status.read(Registers::STATUS);
        // The receiver may have given up.
        let _ = tell.send(activation.event().sequence);
        read.map(drop).map_err(|error| DeviceError {
            attempted: "read the status of the port".to_owned(),
            said: error.to_string(),
            remedy: "look at /dev/port",
        })
    };
    let (unit, log) = SchedulingUnit::new(Box::new(source), Box::new(action), None, &lab.timebase, RING);
    let mut raised = Vec::with_capacity(COUNT.into());
    let ran = ran(unit, log, &stop, &served, |wait| {
        for number in 1..=COUNT {
            // Gives the unit time to fall asleep.
            std::thread::sleep(Duration::from_millis(1));
            registers.write(Registers::DATA, number)?;
            raised.push(lab.timebase.now());
            // QEMU takes the byte at the beginning of the strobe and interrupts at its end.
            registers.write(Registers::CONTROL, registers.strobed & !Registers::STROBE)?;
            wait(number.into())?;
            registers.write(Registers::CONTROL, registers.strobed)?;
            findings.captured(number);
        }
        Ok(())
    })?;
    judge(&ran, &raised, BY_WAKE, false, findings)?;
    check(ran.counts.activations == u64::from(COUNT), || format!("{:?}", ran.counts))
}
