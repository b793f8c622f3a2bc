//! One word for each thread, NULL at first. It is looked up at every call of a task, and a call of a task takes
//! nanoseconds.
//!
//! On x86-64 code in a shared library finds its thread-local data by calling `__tls_get_addr`, which takes fourteen
//! instructions. By a TLS descriptor it takes five if the library was loaded with the program, and a library that was
//! loaded later works, too. The compiler's own descriptors do not suit: they rely on a call that keeps the vector
//! registers, which glibc keeps from version 2.40 on. So the lookup here is written by hand, and declares that it does
//! not keep them. Other processors have descriptors anyway.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "thread-local data are found by assembly"))]

use std::cell::Cell;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .tbss.hairspring_word, \"awT\", @nobits",
    ".balign 8",
    ".globl hairspring_word",
    ".hidden hairspring_word",
    ".type hairspring_word, @object",
    ".size hairspring_word, 8",
    "hairspring_word:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn found() -> &'static Cell<*const ()> {
    let word: *const Cell<*const ()>;
    // SAFETY: the ABI's sequence for TLS descriptors; linkers know it and shorten it. It changes RAX, the flags, and in
    // older C libraries the vector registers. The compiler aligns the stack, because `nostack` is not given. It may
    // keep the place, because a fiber stays on its thread.
    unsafe {
        std::arch::asm!(
            "lea rax, [rip + hairspring_word@tlsdesc]",
            "call [rax + hairspring_word@tlscall]",
            "add rax, fs:[0]",
            out("rax") word,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(pure, nomem),
        );
    }
    // SAFETY: the word lives as long as the thread. No other thread gets its address, and nothing borrows it beyond a
    // read or a write.
    unsafe { &*word }
}

#[cfg(not(target_arch = "x86_64"))]
thread_local! {
    static WORD: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// The word of the calling thread.
#[inline(always)]
pub(crate) fn word() -> *const () {
    #[cfg(target_arch = "x86_64")]
    return found().get();
    #[cfg(not(target_arch = "x86_64"))]
    WORD.get()
}

/// Sets the word of the calling thread.
#[inline(always)]
pub(crate) fn set_word(value: *const ()) {
    #[cfg(target_arch = "x86_64")]
    found().set(value);
    #[cfg(not(target_arch = "x86_64"))]
    WORD.set(value);
}
