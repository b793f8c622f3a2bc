//! [`StackMemory`]: memory of the program on which a task runs.
#![expect(unsafe_code, reason = "takes memory from the program, and protects its lowest page")]

use std::mem::MaybeUninit;

use super::stack::{StackExtent, page};
use crate::calls::LEAST_STACK_BYTES;
use crate::config::ExecError;

/// The stack's end is a multiple of this, on every processor.
const ALIGNMENT: usize = 16;

/// Memory of the program for the stack of one task, for [`TaskOptions::with_stack`](crate::TaskOptions::with_stack).
///
/// The lowest whole page of it is the guard page: while the task exists, an access to that page is a fault, as below
/// any other stack. The page is ordinary memory again when the task is deleted. The contents of the memory are lost.
#[derive(Debug)]
pub struct StackMemory {
    /// Of the guard page.
    guard: usize,
    /// The stack: above the guard page.
    extent: StackExtent,
}

impl StackMemory {
    /// Takes this memory. Above its lowest whole page there must be at least [`LEAST_STACK_BYTES`], with threads also
    /// some kilobytes for the C library.
    ///
    /// # Errors
    /// The memory is too small, or the system refused to protect the guard page.
    pub fn new(memory: &'static mut [MaybeUninit<u8>]) -> Result<Self, ExecError> {
        // SAFETY: the memory is borrowed mutably for ever, so no other code has it.
        unsafe { Self::from_raw(memory.as_mut_ptr().cast(), memory.len()) }
    }

    /// The same for an address and a size.
    ///
    /// # Safety
    /// From now until the task is deleted, or this is dropped, only the task accesses the `bytes` at `memory`, which
    /// stay mapped, and readable and writable.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub unsafe fn from_raw(memory: *mut u8, bytes: usize) -> Result<Self, ExecError> {
        let page = page();
        let guard = (memory as usize).checked_next_multiple_of(page).unwrap_or(usize::MAX - page);
        let (low, high) = (guard + page, (memory as usize).saturating_add(bytes) & !(ALIGNMENT - 1));
        if memory.is_null() || high.saturating_sub(low) < LEAST_STACK_BYTES {
            return Err(ExecError::ExecConfig(
                "memory for a stack must have 16,384 bytes above its lowest whole page: give it 6 pages or more",
            ));
        }
        let extent = StackExtent { low, bytes: high - low };
        protect(guard, page, libc::PROT_NONE)?;
        // So that the high-water mark counts what the task uses.
        extent.release_pages();
        Ok(Self { guard, extent })
    }

    /// The stack, without its guard page.
    pub(crate) fn extent(&self) -> StackExtent {
        self.extent
    }
}

impl Drop for StackMemory {
    fn drop(&mut self) {
        // It was readable and writable before. A refusal, for want of the kernel's memory, would leave a page that the
        // program cannot use.
        let _ = protect(self.guard, page(), libc::PROT_READ | libc::PROT_WRITE);
    }
}

fn protect(at: usize, bytes: usize, how: i32) -> Result<(), std::io::Error> {
    // SAFETY: a page that lies within memory that was handed over for this.
    if unsafe { libc::mprotect(at as *mut libc::c_void, bytes, how) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaked(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
        Box::leak(vec![MaybeUninit::new(7); bytes].into_boxed_slice())
    }

    #[test]
    fn a_stack_lies_above_the_lowest_whole_page_and_the_page_comes_back() {
        let memory = leaked(8 * page());
        let (begin, bytes) = (memory.as_mut_ptr() as usize, memory.len());
        let stack = StackMemory::new(memory).expect("it is large enough");
        let StackExtent { low, bytes: usable } = stack.extent();
        assert!(low.is_multiple_of(page()) && (begin + page()..begin + 2 * page()).contains(&low));
        assert!(
            (low + usable).is_multiple_of(16) && low + usable > begin + bytes - 16 && low + usable <= begin + bytes
        );
        drop(stack);
        // SAFETY: the leaked memory, whose former borrow has ended with the stack.
        unsafe { std::ptr::write_volatile((low - page()) as *mut u8, 9) };
    }

    /// Symptom: the allocator found its records gone. Cause: the kernel rounds the length of what it takes back up to
    /// whole pages.
    #[test]
    fn what_lies_beside_the_memory_stays() {
        let whole = leaked(16 * page());
        let begin = whole.as_mut_ptr().cast::<u8>();
        let (before, bytes) = (page() / 2, 8 * page());
        // SAFETY: the middle of the leaked memory; the rest is only read.
        let stack = unsafe { StackMemory::from_raw(begin.add(before), bytes) }.expect("it is large enough");
        drop(stack);
        // SAFETY: the leaked memory around the stack.
        let at = |offset: usize| unsafe { std::ptr::read_volatile(begin.add(offset)) };
        assert!((0..before).chain(before + bytes..16 * page()).all(|offset| at(offset) == 7));
    }

    #[test]
    fn memory_that_is_too_small_is_refused_and_left_alone() {
        for bytes in [0, 1, page(), LEAST_STACK_BYTES, LEAST_STACK_BYTES + page() - 16] {
            let memory = leaked(bytes);
            let begin = memory.as_mut_ptr();
            assert!(StackMemory::new(memory).is_err(), "{bytes}");
            if bytes > 0 {
                // SAFETY: the leaked memory, whose former borrow has ended.
                unsafe { std::ptr::write_volatile(begin.cast::<u8>(), 9) };
            }
        }
    }
}
