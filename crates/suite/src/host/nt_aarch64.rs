//! Non-temporal copies and wide reads on aarch64: pairs of 16-byte registers with the hint that they will not be used
//! soon.
//!
//! The effect of the hint depends on the processor; many ignore it. The copy is ordered like any other.

#![expect(unsafe_code, reason = "assembly and intrinsics: loads and stores by address")]

use std::arch::aarch64::{vaddq_u64, vaddvq_u64, vdupq_n_u64, vld1q_u64};
use std::arch::asm;

/// Bytes that one round of a loop copies or reads.
const ROUND: usize = 64;

/// The instructions that [`copy`] uses here.
pub(crate) fn stores() -> &'static str {
    "STNP, 32 bytes"
}

/// The instructions that [`read`] uses here.
pub(crate) fn loads() -> &'static str {
    "NEON, 16 bytes"
}

/// Copies with the hint.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy(source: &[u8], target: &mut [u8]) {
    assert_eq!(source.len(), target.len(), "a target as long as the source");
    let (from, to) = (source.chunks_exact(ROUND), target.chunks_exact_mut(ROUND));
    for (from, to) in from.zip(to) {
        // SAFETY: reads and writes the ROUND bytes of the two chunks, at any alignment; the registers are named as
        // used.
        unsafe {
            asm!(
                "ldnp {a:q}, {b:q}, [{from}]",
                "ldnp {c:q}, {d:q}, [{from}, #32]",
                "stnp {a:q}, {b:q}, [{to}]",
                "stnp {c:q}, {d:q}, [{to}, #32]",
                from = in(reg) from.as_ptr(),
                to = in(reg) to.as_mut_ptr(),
                a = out(vreg) _,
                b = out(vreg) _,
                c = out(vreg) _,
                d = out(vreg) _,
                options(nostack, preserves_flags),
            );
        }
    }
    let body = source.len() / ROUND * ROUND;
    target[body..].copy_from_slice(&source[body..]);
}

/// The sum of all whole words; bytes after the last whole word are not read.
pub(crate) fn read(bytes: &[u8]) -> u64 {
    let chunks = bytes.chunks_exact(ROUND);
    let rest = chunks.remainder();
    // SAFETY: NEON is part of every aarch64 processor that Linux runs on; each load is within its chunk of ROUND bytes.
    let sum = unsafe {
        let mut sums = [vdupq_n_u64(0); ROUND / 16];
        for chunk in chunks {
            for (step, sum) in sums.iter_mut().enumerate() {
                *sum = vaddq_u64(*sum, vld1q_u64(chunk.as_ptr().add(step * 16).cast()));
            }
        }
        vaddvq_u64(vaddq_u64(vaddq_u64(sums[0], sums[1]), vaddq_u64(sums[2], sums[3])))
    };
    let words = rest.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_ne_bytes);
    words.fold(sum, u64::wrapping_add)
}
