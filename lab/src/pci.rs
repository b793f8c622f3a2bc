//! QEMU's `edu` card: registers, computation of factorials, DMA, and an interrupt.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hairspring_device::{Device, Lines, Pci, PciInterrupt, PciWindow};
use hairspring_time::Nanos;

use crate::Lab;
use crate::findings::{Findings, check, refused, text};
use crate::kernel::FixedPage;
use crate::shell;

const NUMBERS: (&str, &str) = ("0x1234", "0x11e8");
// Registers, from QEMU's description of the card.
const IDENTITY: usize = 0x00;
const INVERTER: usize = 0x04;
const FACTORIAL: usize = 0x08;
const STATUS: usize = 0x20;
pub(crate) const INTERRUPT_STATUS: usize = 0x24;
pub(crate) const INTERRUPT_RAISE: usize = 0x60;
pub(crate) const INTERRUPT_ACKNOWLEDGE: usize = 0x64;
const DMA_SOURCE: usize = 0x80;
const DMA_TARGET: usize = 0x88;
const DMA_COUNT: usize = 0x90;
const DMA_COMMAND: usize = 0x98;
/// The address of the card's own memory, for its DMA.
const BUFFER: u32 = 0x40000;
const COMPUTING: u32 = 1;
const TO_CARD: u32 = 0b01;
const FROM_CARD: u32 = 0b11;
/// Time limit of a command: the card works asynchronously, and QEMU's DMA takes 100 ms.
const PATIENCE: Duration = Duration::from_secs(20);

/// The card's address in sysfs.
pub(crate) fn card() -> Result<String, String> {
    for folder in shell::list("/sys/bus/pci/devices")? {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default().trim().to_owned();
        if (read("vendor").as_str(), read("device").as_str()) == NUMBERS {
            return Ok(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    Err("there is no edu card".to_owned())
}

pub(crate) fn window() -> Result<PciWindow, String> {
    let window = PciWindow::open(&card()?, 0).map_err(text)?;
    let identity = window.read(IDENTITY).map_err(text)?;
    check(identity & 0xff == 0xed, || format!("the card says that it is {identity:#010x}, not an edu"))?;
    Ok(window)
}

fn wait_while(window: &PciWindow, register: usize, bit: u32) -> Result<(), String> {
    let begun = Instant::now();
    while window.read(register).map_err(text)? & bit != 0 {
        check(begun.elapsed() < PATIENCE, || format!("register {register:#x} stays busy"))?;
        std::thread::yield_now();
    }
    Ok(())
}

/// Reads and writes single words, and measures the cost of an access.
pub(crate) fn words(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: usize = 2000;
    let window = window()?;
    let (mut reads, mut writes) = (Vec::with_capacity(COUNT), Vec::with_capacity(COUNT));
    for number in 0..COUNT as u32 {
        let value = number.wrapping_mul(0x9e37_79b9);
        let begun = lab.timebase.stamp_ordered();
        window.write(INVERTER, value).map_err(text)?;
        let between = lab.timebase.stamp_ordered();
        let read = window.read(INVERTER).map_err(text)?;
        let ended = lab.timebase.stamp_ordered();
        check(read == !value, || format!("the card inverted {value:#010x} to {read:#010x}"))?;
        writes.push(lab.timebase.nanos(between.since(begun)));
        reads.push(lab.timebase.nanos(ended.since(between)));
    }
    // All ones is an ordinary value while the card is present.
    window.write(INVERTER, 0).map_err(text)?;
    check(window.read(INVERTER) == Ok(u32::MAX), || "a word of all ones was taken for a card that is gone".to_owned())?;
    findings.exact("accesses", 2 * COUNT);
    findings.measured("write", &writes);
    findings.measured("read", &reads);
    let card = card()?;
    let mut lines = Pci::open(&card, 0, Some(INVERTER), Some(INVERTER), Lines(0b1000)).map_err(text)?;
    lines.write(Lines(0b0110), Lines(0b0011)).map_err(text)?;
    let read = lines.read().map_err(text)?;
    check(read == Lines(!0b1010), || format!("lines were read as {read}"))?;
    refused(window.read(2), "half a word", "multiple of four")?;
    refused(window.read(window.bytes()), "a word behind the end", "within it")?;
    refused(PciWindow::open(&card, 5), "a window that the card has not", "No such file")
}

/// The card computes factorials.
pub(crate) fn factorial(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let window = window()?;
    for (number, expected) in [(1, 1), (5, 120), (10, 3_628_800), (12, 479_001_600)] {
        window.write(FACTORIAL, number).map_err(text)?;
        wait_while(&window, STATUS, COMPUTING)?;
        let found = window.read(FACTORIAL).map_err(text)?;
        check(found == expected, || format!("{number}! is {expected}, the card says {found}"))?;
    }
    findings.exact("factorials", 4);
    Ok(())
}

/// The card copies a page into its own memory and back into another page.
pub(crate) fn dma(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const WORDS: usize = 1000;
    let window = window()?;
    master(&card()?)?;
    let (mut from, mut to) = (FixedPage::new().map_err(text)?, FixedPage::new().map_err(text)?);
    for word in 0..WORDS {
        from.write(word, (word as u32).wrapping_mul(0x85eb_ca6b));
        to.write(word, 0);
    }
    for (source, target, command) in
        [(from.physical(), u64::from(BUFFER), TO_CARD), (BUFFER.into(), to.physical(), FROM_CARD)]
    {
        let low = |address: u64| u32::try_from(address).map_err(|_| format!("a page lies at {address:#x}"));
        window.write(DMA_SOURCE, low(source)?).map_err(text)?;
        window.write(DMA_TARGET, low(target)?).map_err(text)?;
        window.write(DMA_COUNT, (4 * WORDS) as u32).map_err(text)?;
        window.write(DMA_COMMAND, command).map_err(text)?;
        wait_while(&window, DMA_COMMAND, 1)?;
    }
    let wrong = (0..WORDS).filter(|word| to.read(*word) != from.read(*word)).count();
    findings.exact("words", WORDS);
    check(wrong == 0, || format!("{wrong} of {WORDS} words came back wrong"))
}

/// Allows the card to access memory.
fn master(card: &str) -> Result<(), String> {
    let path = Path::new("/sys/bus/pci/devices").join(card).join("config");
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(text)?;
    let mut command = [0; 2];
    file.read_exact_at(&mut command, 4).map_err(text)?;
    command[0] |= 1 << 2;
    file.write_all_at(&command, 4).map_err(text)
}

/// The file of the card's interrupt, once the driver is bound.
pub(crate) fn interrupt(card: &str) -> Result<PciInterrupt, String> {
    let uio = PathBuf::from("/dev/uio0");
    if !uio.exists() {
        shell::write("/sys/bus/pci/drivers/uio_pci_generic/new_id", "1234 11e8")?;
        shell::wait_for("/dev/uio0")?;
    }
    PciInterrupt::open(&uio, card).map_err(text)
}

/// Measures the time from the store that raises an interrupt to the waiting thread. No interrupt is lost or doubled.
pub(crate) fn interrupts(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: usize = 200;
    let card = card()?;
    let window = window()?;
    let mut interrupt = interrupt(&card)?;
    let raising = PciWindow::open(&card, 0).map_err(text)?;
    let quiet = interrupt.wait(Nanos::from_millis(20)).map_err(text)?;
    check(quiet == 0, || format!("{quiet} interrupts that nobody raised"))?;
    let (tell, told) = mpsc::channel();
    let woken = std::thread::scope(|scope| {
        let handler = scope.spawn(move || {
            let mut woken = Vec::with_capacity(COUNT);
            for number in 0..COUNT {
                let came = interrupt.wait(Nanos::from_secs(10)).map_err(text)?;
                let stamp = lab.timebase.stamp_ordered();
                check(came == 1, || format!("{came} interrupts where one was raised, after {number}"))?;
                let status = window.read(INTERRUPT_STATUS).map_err(text)?;
                window.write(INTERRUPT_ACKNOWLEDGE, status).map_err(text)?;
                interrupt.enable().map_err(text)?;
                woken.push((stamp, status));
                // The receiver may have given up.
                let _ = tell.send(());
            }
            Ok::<_, String>(woken)
        });
        let mut raised = Vec::with_capacity(COUNT);
        for number in 0..COUNT {
            // Gives the handler time to fall asleep.
            std::thread::sleep(Duration::from_millis(1));
            raised.push(lab.timebase.stamp_ordered());
            raising.write(INTERRUPT_RAISE, number as u32 + 1).map_err(text)?;
            if told.recv_timeout(PATIENCE).is_err() {
                break;
            }
        }
        let woken = handler.join().map_err(|_| "the handler panicked".to_owned())??;
        Ok::<_, String>(raised.into_iter().zip(woken).collect::<Vec<_>>())
    })?;
    for (number, (_, (_, status))) in woken.iter().enumerate() {
        check(*status == number as u32 + 1, || format!("interrupt {number} said {status}"))?;
    }
    let latencies: Vec<Nanos> =
        woken.iter().map(|(raised, (stamp, _))| lab.timebase.nanos(stamp.since(*raised))).collect();
    findings.exact("interrupts", latencies.len());
    findings.measured("raise_to_handler", &latencies);
    check(latencies.len() == COUNT, || format!("{} of {COUNT} arrived", latencies.len()))
}

/// The file that switches the power of a card's slot.
fn slot(card: &str) -> Result<PathBuf, String> {
    for folder in shell::list("/sys/bus/pci/slots")? {
        let address = std::fs::read_to_string(folder.join("address")).unwrap_or_default();
        if !address.trim().is_empty() && card.starts_with(address.trim()) {
            return Ok(folder.join("power"));
        }
    }
    Err(format!("the card {card} has no slot that can be switched off"))
}

/// Removing a card in use gives errors at its lines, words and interrupt, and does not kill the process.
pub(crate) fn unplugged(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let card = card()?;
    let window = window()?;
    let mut lines = Pci::open(&card, 0, Some(INVERTER), Some(INVERTER), Lines(0)).map_err(text)?;
    let mut written = Pci::open(&card, 0, Some(INVERTER), None, Lines(0)).map_err(text)?;
    let mut interrupt = interrupt(&card)?;
    let slot = slot(&card)?;
    let (ended, waited) = std::thread::scope(|scope| {
        let waiter = scope.spawn(move || interrupt.wait(Nanos::from_secs(10)));
        let remover = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            // Power off: the card leaves the bus, as if pulled out.
            shell::write(slot, "0")
        });
        let begun = Instant::now();
        let ended = loop {
            let accessed = lines.write(Lines(1), Lines(1)).and_then(|()| lines.read());
            if accessed.is_err() || begun.elapsed() > PATIENCE {
                break accessed;
            }
        };
        let waited = waiter.join().map_err(|_| "the waiter panicked".to_owned())?;
        remover.join().map_err(|_| "the remover panicked".to_owned())??;
        Ok::<_, String>((ended, waited))
    })?;
    refused(ended, "a card that was removed", "gone or unplugged")?;
    refused(waited, "the interrupt of a card that was removed", "gone or unplugged")?;
    // This window has not been accessed yet; the lines have seen the removal already.
    refused(window.read(IDENTITY), "another window of it", "gone or unplugged")?;
    refused(lines.make_safe(), "its safe state", "gone or unplugged")?;
    refused(written.make_safe(), "the safe state of lines that were only written", "gone or unplugged")?;
    findings.exact("unplugged", true);
    Ok(())
}
