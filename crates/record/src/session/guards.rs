//! The guards of a session: one ends the others when a thread leaves, one watches the free space.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Board, NOT_SAID};

/// How often the file systems are asked for their free space.
const SPACE_EVERY: Duration = Duration::from_millis(500);

/// Prevents waits for a thread that has ended: marks the recorder as done, and after a panic ends all cards.
pub(super) struct Leaves<'s> {
    pub(super) board: Option<&'s Board>,
    pub(super) ending: &'s AtomicBool,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Relaxed: a plain flag.
            self.ending.store(true, Ordering::Relaxed);
        }
        if let Some(board) = self.board {
            // Release: pairs with the Acquire in the caller's loop; the status before it is seen.
            board.done.store(true, Ordering::Release);
        }
    }
}

/// Asks file systems for their free space until `over` is set.
pub(super) struct SpaceWatch<'s> {
    pub(super) over: &'s AtomicBool,
    pub(super) thread: Option<std::thread::Thread>,
}

impl Drop for SpaceWatch<'_> {
    fn drop(&mut self) {
        // Relaxed: a plain flag.
        self.over.store(true, Ordering::Relaxed);
        self.thread.iter().for_each(std::thread::Thread::unpark);
    }
}

pub(super) fn watch_space(cards: &[(Arc<Board>, Vec<PathBuf>)], over: &AtomicBool) {
    // Relaxed: a plain flag, and figures for people.
    while !over.load(Ordering::Relaxed) {
        for (board, folders) in cards {
            let free = folders.iter().try_fold(0_u64, |sum, folder| Some(sum + hairspring_store::free_bytes(folder)?));
            board.free_bytes.store(free.unwrap_or(NOT_SAID), Ordering::Relaxed);
        }
        std::thread::park_timeout(SPACE_EVERY);
    }
}

/// The message of a panic.
pub(super) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "nothing".to_owned())
}
