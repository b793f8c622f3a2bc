//! [`Pci`]: a window of a PCI card (a BAR), mapped through sysfs, with digital lines in two of its words; and
//! [`PciInterrupt`], its interrupt through UIO.
//!
//! Words are 32 bits, read and written one at a time, in the order of the program, each exactly once. The user knows
//! what a register does: for digital lines this driver uses one register for the outputs and one for the inputs, and
//! knows only their offsets. The driver stores the outputs itself, so the register need not be readable. But only one
//! process can use the lines, because each process would overwrite lines set by another.
//!
//! **Removed cards.** The bridge answers for a missing card with all ones or zero, which are also ordinary values. So
//! after each of these the driver asks the kernel whether the card is present; if not, this access and all later ones
//! are errors. A store to a removed card is lost silently: only a load detects the removal, so the code for the safe
//! state asks the kernel after its store. If the kernel revokes the window (older kernels with the card, newer ones
//! when a driver claims it), an access would be a bus error, which kills the process. Instead ordinary memory replaces
//! the window (see `window.rs`), and the access is an error.
//!
//! **Real-time behaviour.** An access is one load or one store, no system call. A load waits for the card, a store does
//! not. Only after a load of all ones or zero does a system call follow, which costs a microsecond or two.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_describe::{Described, DescriptionError, Snippet, grammar};
use hairspring_machine::{Machine, Nanos};
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines};
use crate::driver::DriverOptions;
use crate::driver::node::Node;
use crate::memory::window::Window;
use crate::refusal::refusal;
use crate::system::wait_readable;

const REMEDY: &str = "name a card and an unused memory window of it, as in pci:0000:00:04.0,bar=0; lspci -v lists them";
const INTERRUPT_REMEDY: &str =
    "load uio_pci_generic, and write the card's vendor and device numbers into its new_id file";
/// Where the kernel lists the cards.
const CARDS: &str = "/sys/bus/pci/devices";
/// Offset of the command register in the configuration space, and its bit that disables interrupts. The status register
/// follows, with a bit in its first byte for a pending interrupt, even a disabled one.
const COMMAND: u64 = 4;
const COMMAND_NO_INTERRUPT: u16 = 1 << 10;
const STATUS_INTERRUPT: u8 = 1 << 3;
/// Values read where no card answers: all ones, and on some bridges zero.
const NOBODY: [u32; 2] = [u32::MAX, 0];
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// Windows of a card.
pub(crate) const BARS: u8 = 6;

/// The options of a description `pci:CARD,bar=NUMBER,out=OFFSET,in=OFFSET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciOptions {
    /// The card, as `lspci -D` prints it.
    pub card: String,
    /// The window.
    pub bar: u8,
    /// The outputs' word, in bytes from the beginning of the window.
    pub output: Option<u32>,
    /// The inputs' word.
    pub input: Option<u32>,
}

impl DriverOptions for PciOptions {
    const KIND: &'static str = "pci";
    const EXAMPLE: &'static str = "pci:0000:00:04.0,bar=0,out=0x8";
    const HINT: &'static str = "bar= and 0 to 5, out= or in= and an offset, like 0x8, or safe= and a number";

    fn at(place: &str) -> Self {
        Self { card: place.to_owned(), bar: 0, output: None, input: None }
    }

    fn place(&self) -> String {
        self.card.clone()
    }

    fn set(&mut self, key: &str, value: Snippet<'_>) -> Result<bool, DescriptionError> {
        let offset = || {
            let why = "write the offset of a word in bytes, a multiple of four, like 0x8";
            let offset = value.read(grammar::number, why)?;
            if (offset as usize).is_multiple_of(WORD) { Ok(Some(offset)) } else { Err(value.wrong(why)) }
        };
        match key {
            "bar" => {
                let why = "a card has windows 0 to 5";
                self.bar = value.parse_or(why)?;
                if self.bar >= BARS {
                    return Err(value.wrong(why));
                }
            }
            "out" => self.output = offset()?,
            "in" => self.input = offset()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn check(&self, read: &Described<'_>) -> Result<(), DescriptionError> {
        let example = read.example();
        match self.output.or(self.input) {
            Some(_) => Ok(()),
            None => Err(read.missing(format!("name a word for the outputs or the inputs, as in {example}"))),
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let words = [("out", self.output), ("in", self.input)].into_iter();
        let words = words.filter_map(|(name, offset)| Some((name, format!("{:#x}", offset?))));
        std::iter::once(("bar", self.bar.to_string())).chain(words).collect()
    }

    fn output_lines(&self) -> Option<Lines> {
        Some(Lines::first(self.output.map_or(0, |_| u32::BITS as usize)))
    }

    fn refuses_lock_file(&self) -> Option<&'static str> {
        Some("only one process can use the lines of a card, so a lock is not needed: leave it out")
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        _: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        let offset = |word: Option<u32>| word.map(|offset| offset as usize);
        Ok(Box::new(Pci::open(
            &self.card,
            self.bar,
            offset(self.output),
            offset(self.input),
            safe.unwrap_or_default(),
        )?))
    }
}

/// A window of a card.
#[derive(Debug)]
pub struct PciWindow {
    window: Window,
    configuration: File,
    card: String,
    found_gone: AtomicBool,
}

impl PciWindow {
    /// Maps a window of a card, by the card's address as `lspci -D` prints it: `0000:00:04.0`. Lets the card answer to
    /// memory accesses.
    ///
    /// # Errors
    /// The card or window does not exist, a permission is missing, it is a window of I/O ports, or a kernel driver has
    /// claimed it.
    pub fn open(card: &str, bar: u8) -> Result<Self, DeviceError> {
        let folder = folder(card)?;
        let attempted = format!("map window {bar} of the card {card}");
        // `enable` counts; a card that is enabled already, or used by a driver, will do.
        let _ = std::fs::write(folder.join("enable"), "1");
        let path = folder.join(format!("resource{bar}"));
        let window = Window::named(&path, 0, None, format!("the card {card}"), attempted.clone(), REMEDY)?;
        let configuration = OpenOptions::new().read(true).open(folder.join("config"));
        let configuration = configuration.map_err(|error| refusal(attempted, &error, REMEDY))?;
        Ok(Self { window, configuration, card: card.to_owned(), found_gone: AtomicBool::new(false) })
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.window.bytes()
    }

    /// Reads the word at an offset of bytes.
    ///
    /// # Errors
    /// The card is gone, or the window has no word at the offset.
    pub fn read(&self, offset: usize) -> Result<u32, DeviceError> {
        let value = self.window.read(offset)?;
        if self.is_gone() || (NOBODY.contains(&value) && !self.answers()) {
            return Err(self.gone("read from"));
        }
        Ok(value)
    }

    /// Writes the word at an offset of bytes. The card may get it later: read something from it to be sure.
    ///
    /// # Errors
    /// As [`read`](Self::read); but only a read detects that the card is gone.
    pub fn write(&self, offset: usize, value: u32) -> Result<(), DeviceError> {
        self.window.write(offset, value)?;
        if self.is_gone() { Err(self.gone("write to")) } else { Ok(()) }
    }

    /// Whether the card answers at the first word of its configuration space, which contains its ids.
    fn answers(&self) -> bool {
        let mut word = [0; WORD];
        let read = self.configuration.read_exact_at(&mut word, 0);
        read.is_ok() && !NOBODY.contains(&u32::from_ne_bytes(word))
    }

    /// Whether an earlier access has found that the card is gone.
    fn is_gone(&self) -> bool {
        // Relaxed: a plain flag, of this thread or of one that has passed the window on since.
        self.found_gone.load(Ordering::Relaxed) || self.window.is_revoked()
    }

    fn gone(&self, attempted: &str) -> DeviceError {
        self.found_gone.store(true, Ordering::Relaxed);
        let error = io::Error::from_raw_os_error(libc::ENODEV);
        refusal(format!("{attempted} the card {}", self.card), &error, REMEDY)
    }
}

/// The kernel's folder of a card.
fn folder(card: &str) -> Result<PathBuf, DeviceError> {
    let folder = Path::new(CARDS).join(card);
    if card.is_empty() || card.contains('/') || !folder.is_dir() {
        return Err(DeviceError {
            attempted: format!("open the card {card}"),
            said: "there is no such card".to_owned(),
            remedy: REMEDY,
        });
    }
    Ok(folder)
}

/// Digital lines of a card: a word of its window for the outputs, one for the inputs.
#[derive(Debug)]
pub struct Pci {
    window: PciWindow,
    outputs: Option<usize>,
    inputs: Option<usize>,
    state: Lines,
    safe: Lines,
}

impl Pci {
    /// Takes these words of a window, and sets the outputs to the safe state.
    ///
    /// # Errors
    /// As [`PciWindow::open`]; words outside the window.
    pub fn open(
        card: &str,
        bar: u8,
        outputs: Option<usize>,
        inputs: Option<usize>,
        safe: Lines,
    ) -> Result<Self, DeviceError> {
        let window = PciWindow::open(card, bar)?;
        for offset in [outputs, inputs].into_iter().flatten() {
            window.window.word(offset)?;
        }
        let mut card = Self { window, outputs, inputs, state: safe, safe };
        card.init()?;
        Ok(card)
    }
}

impl Device for Pci {
    fn name(&self) -> String {
        format!("card {}", self.window.card)
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        self.make_safe()
    }

    fn output_lines(&self) -> Lines {
        self.outputs.map_or(Lines(0), |_| Lines(u32::MAX))
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.check_outputs(mask)?;
        self.state = Lines(self.state.0 & !mask.0 | value.0 & mask.0);
        self.outputs.map_or(Ok(()), |offset| self.window.write(offset, self.state.0))
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        self.inputs.map_or(Ok(Lines(0)), |offset| self.window.read(offset).map(Lines))
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }

    fn make_safe(&mut self) -> Result<(), DeviceError> {
        self.write(self.output_lines(), self.safe)?;
        // The store arrives before the card answers this, or both are lost.
        if self.window.answers() { Ok(()) } else { Err(self.window.gone("make safe")) }
    }
}

/// The interrupt of a card whose driver is `uio_pci_generic`.
#[derive(Debug)]
pub struct PciInterrupt {
    node: Node,
    configuration: File,
    last: Option<u32>,
}

impl PciInterrupt {
    /// Opens the interrupt of a card by its UIO file, for instance `/dev/uio0`, and enables it.
    ///
    /// # Errors
    /// No such file or card, no permission, no UIO file.
    pub fn open(path: &Path, card: &str) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the interrupt", INTERRUPT_REMEDY)?;
        let configuration = folder(card)?.join("config");
        let configuration = OpenOptions::new().read(true).write(true).open(configuration);
        let configuration = configuration
            .map_err(|error| refusal(format!("open the configuration of the card {card}"), &error, INTERRUPT_REMEDY))?;
        let interrupt = Self { node, configuration, last: None };
        interrupt.enable()?;
        Ok(interrupt)
    }

    /// Unmasks the card's interrupt; returns whether the card is already asserting it. The kernel masks it at each
    /// interrupt, because the card asserts it until it is served: serve the card first, then call this.
    ///
    /// # Errors
    /// The card is gone.
    pub fn enable(&self) -> Result<bool, DeviceError> {
        let mut registers = [0; 2 * size_of::<u16>()];
        let enabled = self.configuration.read_exact_at(&mut registers, COMMAND).and_then(|()| {
            let [low, high, ..] = registers;
            let allowed = u16::from_le_bytes([low, high]) & !COMMAND_NO_INTERRUPT;
            self.configuration.write_all_at(&allowed.to_le_bytes(), COMMAND)
        });
        enabled.map_err(|error| self.failed("enable", &error))?;
        Ok(registers[2] & STATUS_INTERRUPT != 0)
    }

    /// Waits at most `most` for the interrupt. Returns the number since the last call, 0 if there was none. Blocks.
    ///
    /// # Errors
    /// The card is gone.
    pub fn wait(&mut self, most: Nanos) -> Result<u32, DeviceError> {
        let waited = wait_readable(self.node.as_fd(), most);
        if !waited.map_err(|error| self.failed("wait for", &error))? {
            return Ok(0);
        }
        let mut count = [0; WORD];
        self.node.file().read_exact(&mut count).map_err(|error| self.failed("wait for", &error))?;
        let count = u32::from_ne_bytes(count);
        // The first count includes all interrupts since the driver was loaded: at least one of them is new.
        let new = self.last.replace(count).map_or(1, |last| count.wrapping_sub(last));
        Ok(new)
    }

    fn failed(&self, attempted: &str, error: &io::Error) -> DeviceError {
        refusal(format!("{attempted} the interrupt {}", self.node.path().display()), error, INTERRUPT_REMEDY)
    }
}

impl AsFd for PciInterrupt {
    /// Readable when there was an interrupt; a read of four bytes gives their count since the driver was loaded.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.node.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A station on a removed card reported the safe state, because it had only written.
    #[test]
    fn the_safe_state_of_a_card_that_does_not_answer_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let [window, configuration] = ["resource0", "config"].map(|name| folder.path().join(name));
        std::fs::write(&window, [0; 16]).expect("written");
        std::fs::write(&configuration, 0x11e8_1234_u32.to_ne_bytes()).expect("written");
        let window = PciWindow {
            window: Window::map(&window, 0, None).expect("mapped"),
            configuration: File::open(&configuration).expect("opened"),
            card: "0000:00:04.0".to_owned(),
            found_gone: AtomicBool::new(false),
        };
        let (outputs, safe) = (Some(8), Lines(0b100));
        let mut card = Pci { window, outputs, inputs: None, state: safe, safe };
        card.make_safe().expect("it answers");
        assert_eq!(card.window.read(8), Ok(0b100));
        card.write(Lines(1), Lines(1)).expect("written");
        std::fs::write(&configuration, [0xff; WORD]).expect("written");
        assert!(card.write(Lines(1), Lines(1)).is_ok(), "a write cannot detect that the card is gone");
        let error = card.make_safe().expect_err("it is gone").to_string();
        assert!(error.contains("make safe the card") && error.contains("gone or unplugged"), "{error}");
        assert!(card.write(Lines(1), Lines(1)).is_err(), "it is known now");
    }

    #[test]
    fn a_card_that_is_not_there_is_told_with_how_to_find_one() {
        for card in ["ffff:ff:1f.7", "", "../../../etc"] {
            let error = PciWindow::open(card, 0).expect_err(card).to_string();
            assert!(error.contains("there is no such card") && error.contains("lspci"), "{error}");
        }
        let error = PciInterrupt::open(Path::new("/dev/none"), "ffff:ff:1f.7").expect_err("none").to_string();
        assert!(error.contains("No such file") && error.contains("uio_pci_generic"), "{error}");
    }
}
