//! [`Pcm`]: a stream of a sound card: a buffer of frames with a pointer that moves steadily.
//!
//! The stream is the kernel's, or a scripted one ([`testing`](super::testing)) that drives the same code in tests.
//! Nothing here blocks.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use hairspring_machine::{Host, Instant, Machine as _, Nanos};
use zerocopy::FromZeros as _;

use super::abi::{self, Status, TimeSpec};
use super::kernel::Node;
use super::setup::{PcmSetup, PcmWire};
use super::testing::ScriptedPcm;

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcmState {
    /// Set up, but not prepared: it was stopped.
    Stopped,
    /// Ready to start.
    Prepared,
    /// The pointer moves.
    Running,
    /// Its driver has stopped it.
    Overrun,
    /// Ends when all its frames are taken or played.
    Draining,
    /// The hardware was suspended.
    Suspended,
    /// The card is gone.
    Gone,
}

/// A look at a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcmStatus {
    /// Its state.
    pub state: PcmState,
    /// The card's pointer, below [`PcmSetup::boundary`].
    pub pointer: u64,
    /// The program's pointer, below the boundary.
    pub program: u64,
    /// When the card's pointer moved last, as far as it is known.
    pub changed: Instant,
    /// Whether that is the driver's stamp. Otherwise it is the end of the look that first showed the pointer there.
    pub is_stamped: bool,
    /// When the stream started or stopped last.
    pub triggered: Instant,
}

/// A configured stream.
#[derive(Debug)]
pub struct Pcm {
    back_end: BackEnd,
    setup: PcmSetup,
    /// Start and result of the last look.
    last: Option<(Instant, PcmStatus)>,
    /// Samples as the driver passes them, where they are stored in another form.
    passed: Vec<u8>,
}

#[derive(Debug)]
enum BackEnd {
    Kernel(Node),
    Scripted(Box<ScriptedPcm>),
}

impl BackEnd {
    fn read(&mut self, into: &mut [u8], frame_bytes: u64) -> io::Result<u64> {
        match self {
            Self::Kernel(node) => node.read_frames(into, frame_bytes),
            Self::Scripted(card) => card.read(into),
        }
    }

    fn write(&mut self, from: &[u8], frame_bytes: u64) -> io::Result<u64> {
        match self {
            Self::Kernel(node) => node.write_frames(from, frame_bytes),
            Self::Scripted(card) => card.write(from),
        }
    }
}

impl Pcm {
    /// A stream of the kernel.
    pub(super) fn kernel(node: Node, setup: PcmSetup) -> Self {
        Self { back_end: BackEnd::Kernel(node), setup, last: None, passed: Vec::new() }
    }

    /// A stream of a scripted card.
    pub fn scripted(card: ScriptedPcm) -> Self {
        let setup = card.setup();
        Self { back_end: BackEnd::Scripted(Box::new(card)), setup, last: None, passed: Vec::new() }
    }

    /// The set-up.
    pub fn setup(&self) -> &PcmSetup {
        &self.setup
    }

    /// The clock of the stamps: `CLOCK_MONOTONIC`, or the script's.
    pub fn now(&mut self) -> Instant {
        match &mut self.back_end {
            BackEnd::Kernel(_) => Host.monotonic(),
            BackEnd::Scripted(card) => card.now(),
        }
    }

    /// Asks the driver where its pointer is.
    ///
    /// # Errors
    /// The system's error; `ENODEV` if the card was pulled out.
    pub fn status(&mut self) -> io::Result<PcmStatus> {
        let before = self.now();
        let shown = match &mut self.back_end {
            BackEnd::Kernel(node) => Self::ask(node)?,
            BackEnd::Scripted(card) => card.status()?,
        };
        let after = self.now();
        let status = believed(shown, self.last, after);
        self.last = Some((before, status));
        Ok(status)
    }

    fn ask(node: &Node) -> io::Result<PcmStatus> {
        let mut status = Status::new_zeroed();
        node.exchange(&abi::STATUS_EXT, &mut status)?;
        let state = match status.state {
            2 => PcmState::Prepared,
            3 | 6 => PcmState::Running,
            4 => PcmState::Overrun,
            5 => PcmState::Draining,
            7 => PcmState::Suspended,
            8 => PcmState::Gone,
            _ => PcmState::Stopped,
        };
        Ok(PcmStatus {
            state,
            pointer: status.hw_ptr,
            program: status.appl_ptr,
            changed: instant(status.stamp),
            is_stamped: true,
            triggered: instant(status.trigger),
        })
    }

    /// Reads whole frames. Returns their number.
    ///
    /// # Errors
    /// `EAGAIN` if there are no frames, `EPIPE` if the driver has stopped the stream, or another error of the system.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<u64> {
        let (frame_bytes, wire_bytes) = (self.setup.frame_bytes(), self.setup.wire_bytes());
        if self.setup.wire == PcmWire::AsStored {
            return self.back_end.read(into, frame_bytes);
        }
        let frames = into.len() as u64 / frame_bytes;
        self.passed.resize((frames * wire_bytes) as usize, 0);
        let read = self.back_end.read(&mut self.passed, wire_bytes)?;
        self.setup.wire.unpack(&self.passed[..(read * wire_bytes) as usize], into);
        Ok(read)
    }

    /// Writes whole frames. Returns their number.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, or as above.
    pub fn write(&mut self, from: &[u8]) -> io::Result<u64> {
        if self.setup.wire == PcmWire::AsStored {
            return self.back_end.write(from, self.setup.frame_bytes());
        }
        self.setup.wire.pack(from, &mut self.passed);
        self.back_end.write(&self.passed, self.setup.wire_bytes())
    }

    /// Moves the program's pointer without moving frames. Returns the distance in frames.
    ///
    /// # Errors
    /// The system's error.
    pub fn forward(&mut self, frames: u64) -> io::Result<u64> {
        match &mut self.back_end {
            BackEnd::Kernel(node) => {
                let mut moved = frames;
                node.exchange(&abi::FORWARD, &mut moved)?;
                Ok(moved)
            }
            BackEnd::Scripted(card) => card.forward(frames),
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(&mut self) -> io::Result<()> {
        match &mut self.back_end {
            BackEnd::Kernel(node) => node.command(abi::START),
            BackEnd::Scripted(card) => card.start(),
        }
    }

    /// Prepares it again, with both pointers at 0.
    ///
    /// # Errors
    /// The system's error.
    pub fn prepare(&mut self) -> io::Result<()> {
        match &mut self.back_end {
            BackEnd::Kernel(node) => node.command(abi::PREPARE),
            BackEnd::Scripted(card) => card.prepare(),
        }
    }

    /// Stops a recording stream and keeps its frames; lets a playing one end after its frames.
    ///
    /// # Errors
    /// The system's error.
    pub fn drain(&mut self) -> io::Result<()> {
        let drained = match &mut self.back_end {
            BackEnd::Kernel(node) => node.command(abi::DRAIN),
            BackEnd::Scripted(card) => card.drain(),
        };
        match drained {
            // It drains, and the call does not wait for its end.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            drained => drained,
        }
    }

    /// Stops it; its frames are dropped.
    pub fn halt(&mut self) {
        // A stream that does not run cannot be stopped, which is no failure.
        let _ = match &mut self.back_end {
            BackEnd::Kernel(node) => node.command(abi::DROP),
            BackEnd::Scripted(card) => card.halt(),
        };
    }

    /// Continues a stream after the hardware was suspended; the pointer continues, too.
    ///
    /// # Errors
    /// The hardware cannot resume, or another error of the system.
    pub fn resume(&mut self) -> io::Result<()> {
        match &mut self.back_end {
            BackEnd::Kernel(node) => node.command(abi::RESUME),
            BackEnd::Scripted(_) => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        }
    }

    /// The descriptor that is readable, or writable, when a period of frames has passed.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.back_end {
            BackEnd::Kernel(node) => Some(node.as_fd()),
            BackEnd::Scripted(_) => None,
        }
    }
}

/// A pointer that moved since the last look has a stamp since then. Some drivers leave a stale one, or none; then the
/// end of the look counts.
fn believed(shown: PcmStatus, last: Option<(Instant, PcmStatus)>, after: Instant) -> PcmStatus {
    match last {
        Some((_, last)) if last.pointer == shown.pointer && last.state == shown.state => {
            PcmStatus { changed: last.changed, is_stamped: last.is_stamped, ..shown }
        }
        Some((before, _)) if (before..=after).contains(&shown.changed) => shown,
        None if shown.changed > Instant::BOOT && shown.changed <= after => shown,
        _ => PcmStatus { changed: after, is_stamped: false, ..shown },
    }
}

fn instant(time: TimeSpec) -> Instant {
    Instant::from_monotonic(Nanos::new(time.seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_that_cannot_be_true_is_replaced_by_the_end_of_the_look() {
        let at = |ms| Instant::BOOT + Nanos::from_millis(ms);
        let shown = |pointer, changed| PcmStatus {
            state: PcmState::Running,
            pointer,
            program: 0,
            changed: at(changed),
            is_stamped: true,
            triggered: at(1),
        };
        let last = Some((at(10), shown(48, 9)));
        assert_eq!(believed(shown(96, 11), last, at(12)), shown(96, 11));
        // Stale, none, and in the future.
        for wrong in [9, 0, 13] {
            let status = believed(shown(96, wrong), last, at(12));
            assert_eq!((status.changed, status.is_stamped), (at(12), false), "{wrong}");
        }
        // A pointer that did not move keeps its time.
        assert_eq!(believed(shown(48, 0), last, at(12)), shown(48, 9));
    }
}
