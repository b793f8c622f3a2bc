//! Distinguishes a stack overflow from any other crash.
//!
//! A fiber that runs over the end of its stack hits the guard page below it, and the kernel sends SIGSEGV. While fibers
//! run, a handler looks whether the address lies in the guard page of one of them. If so, the handler prints which task
//! it was, how large its stack was and what to do, and lets the process end as it would have. Any other fault goes to
//! the handler that was there before.
//!
//! The handler touches only what was prepared for it: the chain of engines that run on this thread, and their stacks'
//! extents in an array that does not move while it is looked at.
#![expect(unsafe_code, reason = "a signal handler")]

use std::cell::Cell;
use std::sync::Once;

use super::stacks::Stack;
use crate::system::stack::{StackExtent, StackUse, page};

/// The stack of one fiber, as the handler needs it.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// The guard page lies below it.
    stack: StackExtent,
    task: u32,
}

thread_local! {
    /// Extents of the stacks of the engine that runs on this thread. Const-initialised and without a destructor, so
    /// that reading it in a handler only loads from the thread's own block.
    static EXTENTS: Cell<*const Vec<Extent>> = const { Cell::new(std::ptr::null()) };
}

/// While it lives, overflows of this engine's fibers on this thread are reported as stack overflows.
pub(super) struct GuardPages {
    outer: *const Vec<Extent>,
    _handlers: AlternateStack,
}

impl GuardPages {
    /// Watches the stacks at these addresses, which stay there while it lives.
    pub(super) fn watch(extents: *const Vec<Extent>) -> Self {
        install();
        let outer = EXTENTS.replace(extents);
        Self { outer, _handlers: AlternateStack::provide() }
    }
}

impl Drop for GuardPages {
    fn drop(&mut self) {
        EXTENTS.set(self.outer);
    }
}

/// A stack for the handler while fibers run. Rust's own threads have one; the main thread of a program in C has none,
/// and the handler could not run on a stack that has overflowed.
struct AlternateStack(Option<Box<[u8]>>);

/// More than the registers of any processor and the handler's frames take.
const HANDLER_STACK_BYTES: usize = 64 * 1024;

impl AlternateStack {
    fn provide() -> Self {
        // SAFETY: both structures live, and zero is a valid value of all their fields.
        unsafe {
            let mut present: libc::stack_t = std::mem::zeroed();
            if libc::sigaltstack(std::ptr::null(), &raw mut present) != 0 || present.ss_flags & libc::SS_DISABLE == 0 {
                return Self(None);
            }
            let mut memory = vec![0_u8; HANDLER_STACK_BYTES].into_boxed_slice();
            let own = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLER_STACK_BYTES };
            // The memory stays where it is until `drop` has taken it away from the kernel.
            Self((libc::sigaltstack(&raw const own, std::ptr::null_mut()) == 0).then_some(memory))
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: the structure lives; no handler runs on the stack, because this is not a handler.
            unsafe { libc::sigaltstack(&raw const none, std::ptr::null_mut()) };
        }
    }
}

/// Notes where a fiber's stack lies.
pub(super) fn note(extents: &mut Vec<Extent>, task: u32, stack: &Stack) {
    let stack = stack.extent();
    // The task's former stack, and the stack's former task.
    extents.retain(|extent| extent.stack.low != stack.low && extent.task != task);
    extents.push(Extent { stack, task });
}

/// Forgets the stack of a fiber that is gone.
pub(super) fn forget(extents: &mut Vec<Extent>, task: u32) {
    extents.retain(|extent| extent.task != task);
}

/// How much a fiber has used of its stack; none before its first run.
pub(super) fn stack_use(extents: &[Extent], task: u32) -> Option<StackUse> {
    extents.iter().find(|extent| extent.task == task)?.stack.touched()
}

/// The handlers that were there before.
static mut BEFORE: [Option<libc::sigaction>; 2] = [None, None];
const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (place, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: the structures live; the handler is async-signal-safe as its comment shows. `BEFORE` is written
            // only here, once, before the handler that reads it can run.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &raw mut before) == 0 {
                    BEFORE[place] = Some(before);
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                }
            }
        }
    });
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid structure, which has an address for these signals.
    let address = unsafe { (*info).si_addr() } as usize;
    let page = page();
    let extents = EXTENTS.get();
    if !extents.is_null() {
        // SAFETY: the engine that set the pointer runs on this thread, below this handler; it is writing the array only
        // in `note`, on the carrier's own stack or another fiber's, which cannot be what overflows into a fiber's guard
        // page at the same time.
        let extents = unsafe { &*extents };
        if let Some(extent) =
            extents.iter().find(|extent| (extent.stack.low - page..extent.stack.low).contains(&address))
        {
            tell(extent.task, extent.stack.bytes);
        }
    }
    // Back to what was there before; the faulting instruction runs again and meets it.
    let place = usize::from(signal != libc::SIGSEGV);
    // SAFETY: written once before this handler was installed; the structure is what the kernel gave.
    unsafe {
        let before: Option<libc::sigaction> = (&raw const BEFORE[place]).read();
        if let Some(before) = before {
            libc::sigaction(signal, &raw const before, std::ptr::null_mut());
        }
    }
}

/// Reports the overflow on standard error, without allocating.
fn tell(task: u32, stack_bytes: usize) {
    let mut line = Line { text: [0; 200], length: 0 };
    line.push(b"task T");
    line.push_number(task as usize);
    line.push(b" has overflowed its stack of ");
    line.push_number(stack_bytes);
    line.push(b" bytes; give the task a larger one (ExecConfig::stack_bytes, TaskOptions::stack_bytes)\n");
    // SAFETY: the bytes live; write is async-signal-safe.
    unsafe { libc::write(2, line.text.as_ptr().cast(), line.length) };
}

struct Line {
    text: [u8; 200],
    length: usize,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length < self.text.len() {
                self.text[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn push_number(&mut self, number: usize) {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}
