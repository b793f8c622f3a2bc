//! [`Output`]: the destination of a sink's frames: nothing, a file or a pipe, or a checker.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::feed::FeedPiece;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_source::pattern::{Mismatch, Pattern};

/// Takes frames in order.
pub trait Output: Send {
    /// The next frames.
    ///
    /// # Errors
    /// The system's error; the sink then ends.
    fn play(&mut self, piece: FeedPiece<'_>) -> io::Result<()>;

    /// Frames from `at` in the output on were not there when they were due.
    ///
    /// # Errors
    /// As above.
    fn missing(&mut self, at: Frames, frames: Frames) -> io::Result<()> {
        let _ = (at, frames);
        Ok(())
    }

    /// Ends the output.
    ///
    /// # Errors
    /// As above.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The name of the output.
    fn name(&self) -> String;
}

/// Discards all frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Output for Null {
    fn play(&mut self, _piece: FeedPiece<'_>) -> io::Result<()> {
        Ok(())
    }

    fn name(&self) -> String {
        "null".to_owned()
    }
}

/// Writes to a file, a pipe or the standard output. Missing frames are written as zeros, so that the time is kept.
/// Writing blocks while the other side takes no data; a clocked sink then counts the frames that it could not take
/// meanwhile.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    layout: Layout,
    name: String,
}

impl<W: Write + Send> Writer<W> {
    /// Writes frames of this layout.
    pub fn new(to: W, layout: Layout, name: impl Into<String>) -> Self {
        Self { to, layout, name: name.into() }
    }
}

/// Zeros that are written at once.
const ZEROS: [u8; 4096] = [0; 4096];

impl<W: Write + Send> Output for Writer<W> {
    fn play(&mut self, piece: FeedPiece<'_>) -> io::Result<()> {
        self.to.write_all(piece.bytes)
    }

    fn missing(&mut self, _at: Frames, frames: Frames) -> io::Result<()> {
        let mut left = self.layout.bytes_of(frames).0;
        while left > 0 {
            let length = left.min(ZEROS.len() as u64);
            self.to.write_all(&ZEROS[..length as usize])?;
            left -= length;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The findings of a [`Checker`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Frames of the recording that match the pattern.
    pub right: u64,
    /// Frames in place of missing ones.
    pub filled: u64,
    /// Frames that were not there in time.
    pub missing: u64,
    /// The first frame that differs from the pattern.
    pub wrong: Option<Mismatch>,
    /// Whether all pieces and holes followed each other.
    pub in_order: bool,
    next: u64,
}

/// Compares every frame with the pattern that was recorded.
#[derive(Debug)]
pub struct Checker {
    pattern: Pattern,
    layout: Layout,
    checked: Arc<Mutex<Checked>>,
}

impl Checker {
    /// A checker, and its findings, which can be read at any time.
    pub fn new(pattern: Pattern, layout: Layout) -> (Self, Arc<Mutex<Checked>>) {
        let checked = Arc::new(Mutex::new(Checked { in_order: true, ..Checked::default() }));
        (Self { pattern, layout, checked: Arc::clone(&checked) }, checked)
    }
}

impl Output for Checker {
    fn play(&mut self, piece: FeedPiece<'_>) -> io::Result<()> {
        let frames = self.layout.frames_in(hairspring_ring::units::Bytes(piece.bytes.len() as u64)).0;
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.in_order &= checked.next == piece.at.0;
        checked.next = piece.at.0 + frames;
        if !piece.recorded {
            checked.filled += frames;
        } else if let Some(wrong) = self.pattern.check(self.layout, piece.frame, piece.bytes) {
            checked.wrong.get_or_insert(wrong);
        } else {
            checked.right += frames;
        }
        Ok(())
    }

    fn missing(&mut self, at: Frames, frames: Frames) -> io::Result<()> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.in_order &= checked.next == at.0;
        checked.next = at.0 + frames.0;
        checked.missing += frames.0;
        Ok(())
    }

    fn name(&self) -> String {
        format!("check:{}", self.pattern.name())
    }
}
