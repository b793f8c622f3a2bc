//! Results that runs of tasks leave for those that join them.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hairspring_exec::CallStatus;

use super::context::{in_task, serve_any};
use super::ids::{IdKind, hs_exec_task};
use crate::error::HS_E_NULL;
use crate::pointer::Place;

/// Places in one piece of the table.
const PIECE: usize = 256;

/// The number of no task.
const NONE: u32 = u32::MAX;

/// A word for each task of an executive, found by the task's index without a lock. Its memory is allocated when a task
/// is created.
pub(super) struct Results {
    /// Frees the program's handles of this executive's objects.
    parts: Mutex<Vec<Part>>,
    pieces: [OnceLock<Box<[Left; PIECE]>>; PIECE],
}

/// Frees a handle of the program.
type Part = Box<dyn FnOnce() + Send>;

/// Results of the runs of one task.
struct Left {
    /// The task: a later one with the same index has another number.
    task: AtomicU32,
    result: AtomicU64,
}

impl Results {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { parts: Mutex::default(), pieces: [const { OnceLock::new() }; PIECE] })
    }

    /// Keeps a function to call when the executive is freed. Allocates.
    pub(super) fn keep(&self, part: Part) {
        // Code that holds it does not panic.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
    }

    /// Calls the kept functions.
    pub(super) fn free_parts(&mut self) {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        parts.drain(..).for_each(|free| free());
    }

    fn at(&self, number: u32) -> &Left {
        let index = (number & 0xffff) as usize;
        let piece = self.pieces[index / PIECE].get_or_init(|| {
            Box::new([const { Left { task: AtomicU32::new(NONE), result: AtomicU64::new(0) } }; PIECE])
        });
        &piece[index % PIECE]
    }

    /// A task has been created: it has left nothing yet.
    pub(super) fn begin(&self, number: u32) {
        // Relaxed: the task is not started before this.
        self.at(number).result.store(0, Ordering::Relaxed);
        self.at(number).task.store(number, Ordering::Relaxed);
    }

    /// A task has been deleted.
    pub(super) fn end(&self, number: u32) {
        // Relaxed: a call that comes at the same time may still get the result.
        self.at(number).task.store(NONE, Ordering::Relaxed);
    }

    fn leave(&self, number: u32, result: u64) {
        // Release pairs with the Acquire in `find`: what the result points to has been written.
        self.at(number).result.store(result, Ordering::Release);
    }

    fn find(&self, number: u32) -> Option<u64> {
        let left = self.at(number);
        let result = left.result.load(Ordering::Acquire);
        // Relaxed: see `end`.
        (left.task.load(Ordering::Relaxed) == number).then_some(result)
    }
}

/// Leaves a result of this run for the tasks that join it. A later run leaves its own in its place. For tasks.
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_set_result(result: u64) -> c_int {
    in_task(|task, context| {
        context.results().leave(task.id().number(), result);
        Ok(())
    })
}

/// The result that a run of a task left last; 0 if none did. Call it after hs_exec_task_join(), which returns how the
/// run ended. From anywhere in its executive, and from outside between runs. HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_result(task: hs_exec_task, result: *mut u64) -> c_int {
    let Ok(place) = Place::new(result) else { return HS_E_NULL };
    serve_any(task.id, IdKind::Task, &|site, number| {
        place.put(site.results().find(number).ok_or(CallStatus::NoSuchObject)?);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_a_word_of_its_own_until_it_is_deleted() {
        let results = Results::new();
        for index in [0_u32, 1, 255, 256, 65_535] {
            assert_eq!(results.find(index), None, "{index}");
            results.begin(index | 3 << 16);
            assert_eq!(results.find(index | 3 << 16), Some(0), "{index}");
            results.leave(index | 3 << 16, u64::from(index) + 7);
        }
        for index in [0_u32, 1, 255, 256, 65_535] {
            assert_eq!(results.find(index | 3 << 16), Some(u64::from(index) + 7), "{index}");
            assert_eq!(results.find(index | 4 << 16), None, "{index}");
        }
        results.end(255 | 3 << 16);
        assert_eq!((results.find(255 | 3 << 16), results.find(256 | 3 << 16)), (None, Some(263)));
    }
}
