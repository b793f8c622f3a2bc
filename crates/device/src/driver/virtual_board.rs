//! [`VirtualBoard`]: digital lines in shared memory, at the access times of a card on a bus.
//!
//! The board is a file: processes that open the same file share one board, like a card. A file under `/dev/shm` is only
//! memory. The file contains the lock, too.
//!
//! **Access times.** A call takes at least a time that is set when the board is made: that of the VME board in FESA's
//! latency note (seed 003: 1.25 µs to read or write, 3.75 µs to initialise), or zero. The caller polls meanwhile, like
//! a CPU that waits for a bus.
//!
//! **Edges are numbered.** Each write increments a number beside the lines, so that an observer can count the edges
//! that it missed.

#![expect(unsafe_code, reason = "says that the registers are atomics, and can be shared with other processes")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hairspring_describe::{DescriptionError, Snippet};
use hairspring_machine::{Machine, Nanos};
use hairspring_time::{HeldTimebase, POLL_MOST, Timebase};

use crate::device::{Device, DeviceError, Lines};
use crate::driver::DriverOptions;
use crate::lock::{DeviceLock, Lockable, Protocol, Words};
use crate::memory::page::{Page, Zeroed};

/// Shortest durations of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTimes {
    /// One read.
    pub read: Nanos,
    /// One write.
    pub write: Nanos,
    /// An initialisation.
    pub init: Nanos,
}

impl AccessTimes {
    /// Those of the board in FESA's latency note.
    pub const FESA: Self = Self { read: Nanos::new(1250), write: Nanos::new(1250), init: Nanos::new(3750) };
    /// No longer than the memory takes.
    pub const ZERO: Self = Self { read: Nanos::ZERO, write: Nanos::ZERO, init: Nanos::ZERO };
}

/// Size of the file.
const BOARD_BYTES: usize = 4096;
/// First word of a board that is ready: the format and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"hsBoard3");
#[repr(C)]
struct Registers {
    magic: AtomicU64,
    /// The number of writes in the upper half, the output lines in the lower.
    output: AtomicU64,
    input: AtomicU32,
    initialised: AtomicU32,
    read_ns: AtomicU32,
    write_ns: AtomicU32,
    init_ns: AtomicU32,
    protocol: AtomicU32,
    safe: AtomicU32,
    lock: Words,
}

// SAFETY: consists of atomics, and of the lock's words, which are `Zeroed` themselves.
unsafe impl Zeroed for Registers {}

const _: () = assert!(size_of::<Registers>() <= BOARD_BYTES);

/// The options of a description `virtual:PATH,read=TIME,write=TIME,init=TIME,lock=PROTOCOL`. Missing options are those
/// of the board; a new board has no access times, and a lock with inheritance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardOptions {
    /// The file of the board.
    pub path: PathBuf,
    /// Duration of a read.
    pub read: Option<Nanos>,
    /// A write.
    pub write: Option<Nanos>,
    /// An initialisation.
    pub init: Option<Nanos>,
    /// The lock between processes.
    pub lock: Option<Protocol>,
}

impl BoardOptions {
    /// Opens the board. A new one is made with these options and this safe state; an existing one must match the given
    /// ones.
    ///
    /// # Errors
    /// As [`VirtualBoard::open`]; the board was made with other options.
    pub(crate) fn board<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        timebase: &'t Timebase<M>,
    ) -> Result<VirtualBoard<'t, M>, DeviceError> {
        /// The board's option, if it differs from the requested one.
        fn other<T: Copy + PartialEq>(said: Option<T>, has: T) -> Option<T> {
            said.filter(|said| *said != has).and(Some(has))
        }
        let [read, write, init] = [self.read, self.write, self.init].map(|span| span.unwrap_or(Nanos::ZERO));
        let (lines, lock) = (safe.unwrap_or_default(), self.lock.unwrap_or_default());
        let board = VirtualBoard::open(&self.path, AccessTimes { read, write, init }, lines, lock, timebase)?;
        let times = board.times();
        let has = Self {
            path: self.path.clone(),
            read: other(self.read, times.read),
            write: other(self.write, times.write),
            init: other(self.init, times.init),
            lock: other(self.lock, board.lock().protocol()),
        };
        let has = has.settings_with(other(safe, board.safe_state()));
        if has.is_empty() {
            return Ok(board);
        }
        Err(DeviceError {
            attempted: format!("open {}", self.described(safe)),
            said: format!("the board was made with {}", has.join(",")),
            remedy: "leave out the options that differ; or end all its users, and remove its file",
        })
    }

    /// Replaces options by those in force, if given or not the default; returns the safe state likewise.
    ///
    /// # Errors
    /// As [`board`](Self::board).
    pub(crate) fn fill_in<M: Machine + Send + Sync>(
        &mut self,
        mut safe: Option<Lines>,
        timebase: &Timebase<M>,
    ) -> Result<Option<Lines>, DeviceError> {
        fn say<T: PartialEq>(said: &mut Option<T>, has: T, usual: T) {
            if said.is_some() || has != usual {
                *said = Some(has);
            }
        }
        let board = self.board(safe, timebase)?;
        let times = board.times();
        say(&mut self.read, times.read, Nanos::ZERO);
        say(&mut self.write, times.write, Nanos::ZERO);
        say(&mut self.init, times.init, Nanos::ZERO);
        say(&mut self.lock, board.lock().protocol(), Protocol::default());
        say(&mut safe, board.safe_state(), Lines(0));
        Ok(safe)
    }
}

impl DriverOptions for BoardOptions {
    const KIND: &'static str = "virtual";
    const EXAMPLE: &'static str = "virtual:/dev/shm/board";
    const HINT: &'static str = "read=, write= or init= and a time, safe= and a number, or lock=";

    fn at(place: &str) -> Self {
        Self { path: place.into(), read: None, write: None, init: None, lock: None }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn set(&mut self, key: &str, value: Snippet<'_>) -> Result<bool, DescriptionError> {
        let span = match key {
            "read" => &mut self.read,
            "write" => &mut self.write,
            "init" => &mut self.init,
            "lock" => {
                self.lock = Some(value.parse()?);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let why = "write a time of at most 100 ms, for instance 1.25us";
        let time: Nanos = value.parse_or(why)?;
        if !(Nanos::ZERO..=POLL_MOST).contains(&time) {
            return Err(value.wrong(why));
        }
        *span = Some(time);
        Ok(true)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let times = [("read", self.read), ("write", self.write), ("init", self.init)].into_iter();
        let times = times.filter_map(|(name, span)| Some((name, format!("{}ns", span?.count()))));
        times.chain(self.lock.map(|lock| ("lock", lock.to_string()))).collect()
    }

    fn output_lines(&self) -> Option<Lines> {
        Some(Lines(u32::MAX))
    }

    fn refuses_lock_file(&self) -> Option<&'static str> {
        Some("a virtual board has its own lock: write lock= after its file")
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        Ok(Box::new(self.board(safe, timebase)?))
    }
}

/// The board, as one process sees it.
#[derive(Debug)]
pub struct VirtualBoard<'t, M: Machine> {
    page: Page,
    path: PathBuf,
    timebase: HeldTimebase<'t, M>,
}

impl<'t, M: Machine> VirtualBoard<'t, M> {
    /// Opens the board of this file. The first user makes it, with these times, this safe state and this protocol of
    /// its lock; for later users the board's own values count. Waits up to a second for a board that is just being
    /// made.
    ///
    /// # Errors
    /// The file cannot be opened or is no board.
    pub fn open(
        path: &Path,
        times: AccessTimes,
        safe: Lines,
        protocol: Protocol,
        timebase: &'t Timebase<M>,
    ) -> Result<Self, DeviceError> {
        let failed = |error: io::Error| DeviceError {
            attempted: format!("open the board {}", path.display()),
            said: error.to_string(),
            remedy: "name a file in a folder that may be written, for instance /dev/shm/board",
        };
        if [times.read, times.write, times.init].iter().any(|span| *span < Nanos::ZERO || *span > POLL_MOST) {
            return Err(failed(io::Error::other(format!("an access takes 0 s to {POLL_MOST}"))));
        }
        let page = Page::of(path, BOARD_BYTES, MAGIC).map_err(failed)?;
        let board = Self { page, path: path.to_owned(), timebase: HeldTimebase::Lent(timebase) };
        let registers = board.registers();
        board.page.made_once(&registers.magic, MAGIC, path, || {
            let nanos = |span: Nanos| u32::try_from(span.count().max(0)).unwrap_or(u32::MAX);
            // Relaxed: published together, when it is made.
            registers.read_ns.store(nanos(times.read), Ordering::Relaxed);
            registers.write_ns.store(nanos(times.write), Ordering::Relaxed);
            registers.init_ns.store(nanos(times.init), Ordering::Relaxed);
            registers.safe.store(safe.0, Ordering::Relaxed);
            registers.output.store(u64::from(safe.0), Ordering::Relaxed);
            registers.protocol.store(protocol as u32, Ordering::Relaxed);
            registers.lock.make(protocol, &board.page)
        })?;
        Ok(board)
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`].
    pub fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn registers(&self) -> &Registers {
        self.page.start()
    }

    /// Durations of the calls.
    pub fn times(&self) -> AccessTimes {
        let span = |word: &AtomicU32| Nanos::new(word.load(Ordering::Relaxed).into());
        let registers = self.registers();
        AccessTimes { read: span(&registers.read_ns), write: span(&registers.write_ns), init: span(&registers.init_ns) }
    }

    /// The output lines, and the number of writes, without an access of the device: for observers. Zeros after
    /// [`is_gone`](Self::is_gone).
    pub fn outputs(&self) -> (Lines, u32) {
        // Acquire: pairs with the Release of a write.
        let word = self.registers().output.load(Ordering::Acquire);
        (Lines(word as u32), (word >> 32) as u32)
    }

    /// Whether the board's file was truncated. Correct after a look or an access; every later access is an error.
    pub fn is_gone(&self) -> bool {
        self.page.is_revoked()
    }

    /// The input lines as the connected device sees them; no access of the board. Zeros after
    /// [`is_gone`](Self::is_gone).
    pub fn inputs(&self) -> Lines {
        Lines(self.registers().input.load(Ordering::Acquire))
    }

    /// Sets the input lines, as a connected device would.
    pub fn connect(&self, inputs: Lines) {
        self.registers().input.store(inputs.0, Ordering::Release);
    }

    fn initialised(&self, attempted: &str) -> Result<(), DeviceError> {
        let is_initialised = self.registers().initialised.load(Ordering::Acquire) != 0;
        self.page.kept(attempted)?;
        if is_initialised {
            return Ok(());
        }
        Err(DeviceError {
            attempted: format!("{attempted} {}", self.path.display()),
            said: "the board is not initialised".to_owned(),
            remedy: "call init first",
        })
    }

    /// Lets the time of an access pass.
    fn access(&self, word: &AtomicU32) {
        let span = Nanos::new(word.load(Ordering::Relaxed).into());
        if span > Nanos::ZERO {
            // Cannot be refused: the times were checked when the board was made.
            let _ = self.timebase.delay(span);
        }
    }

    fn set(&self, mask: Lines, value: Lines) {
        let output = &self.registers().output;
        let change = |word: u64| {
            let (lines, writes) = (word as u32, (word >> 32) as u32);
            let lines = lines & !mask.0 | value.0 & mask.0;
            Some(u64::from(writes.wrapping_add(1)) << 32 | u64::from(lines))
        };
        // Release: a thread that sees the lines sees all earlier stores. It never fails, because there is always a
        // change.
        let _ = output.fetch_update(Ordering::AcqRel, Ordering::Relaxed, change);
    }
}

impl<M: Machine> Lockable for VirtualBoard<'_, M> {
    fn lock(&self) -> DeviceLock<'_> {
        let registers = self.registers();
        DeviceLock::of(&self.page, &registers.lock, &registers.protocol)
    }
}

impl<M: Machine + Send + Sync> Device for VirtualBoard<'_, M> {
    fn name(&self) -> String {
        format!("virtual board {}", self.path.display())
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        let registers = self.registers();
        self.set(Lines(u32::MAX), self.safe_state());
        self.access(&registers.init_ns);
        registers.initialised.store(1, Ordering::Release);
        self.page.kept("initialise")
    }

    fn output_lines(&self) -> Lines {
        Lines(u32::MAX)
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.initialised("write to")?;
        self.set(mask, value);
        self.access(&self.registers().write_ns);
        self.page.kept("write to")
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        self.initialised("read from")?;
        self.access(&self.registers().read_ns);
        let lines = Lines(self.registers().input.load(Ordering::Acquire));
        self.page.kept("read from").map(|()| lines)
    }

    fn safe_state(&self) -> Lines {
        Lines(self.registers().safe.load(Ordering::Relaxed))
    }
}
