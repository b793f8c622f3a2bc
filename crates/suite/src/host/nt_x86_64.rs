//! Non-temporal copies and wide reads on x86-64: AVX-512, AVX2 or SSE2, whichever the processor has, found at run time.
//!
//! A non-temporal store writes a whole cache line to memory without reading it first and without keeping it in a cache.
//! The stores are weakly ordered among each other; a fence at the end makes the copy behave as any other.

#![expect(
    unsafe_code,
    reason = "intrinsics: loads and stores by address, and instructions that not every processor has"
)]

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_add_epi64, _mm_loadu_si128, _mm_setzero_si128, _mm_sfence, _mm_storeu_si128,
    _mm_stream_si128, _mm256_add_epi64, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm256_stream_si256, _mm512_add_epi64, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_stream_si512,
};

/// Bytes that one round of a loop copies or reads: four lines of the cache.
const ROUND: usize = 256;

#[derive(Clone, Copy)]
enum Width {
    Avx512,
    Avx2,
    Sse2,
}

fn width() -> Width {
    if is_x86_feature_detected!("avx512f") {
        Width::Avx512
    } else if is_x86_feature_detected!("avx2") {
        Width::Avx2
    } else {
        Width::Sse2
    }
}

/// The instructions that [`copy`] uses here.
pub(crate) fn stores() -> &'static str {
    match width() {
        Width::Avx512 => "AVX-512 (vmovntdq, 64 bytes)",
        Width::Avx2 => "AVX (vmovntdq, 32 bytes)",
        Width::Sse2 => "SSE2 (movntdq, 16 bytes)",
    }
}

/// The instructions that [`read`] uses here.
pub(crate) fn loads() -> &'static str {
    match width() {
        Width::Avx512 => "AVX-512, 64 bytes",
        Width::Avx2 => "AVX2, 32 bytes",
        Width::Sse2 => "SSE2, 16 bytes",
    }
}

/// Copies bypassing the caches. Bytes before the first and after the last whole line of the target are copied as usual.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy(source: &[u8], target: &mut [u8]) {
    assert_eq!(source.len(), target.len(), "a target as long as the source");
    let head = target.as_ptr().align_offset(64).min(target.len());
    let body = (target.len() - head) / ROUND * ROUND;
    target[..head].copy_from_slice(&source[..head]);
    let (from, to) = (&source[head..head + body], &mut target[head..head + body]);
    match width() {
        // SAFETY: the processor has AVX-512F, as `width` has just asked it; both slices have the same length, a
        // multiple of ROUND, and the target begins at a multiple of 64: `head` brought it there, or nothing is left.
        Width::Avx512 => unsafe { copy_avx512(from, to) },
        // SAFETY: as above, with AVX2.
        Width::Avx2 => unsafe { copy_avx2(from, to) },
        // SAFETY: as above, with SSE2, which every x86-64 processor has.
        Width::Sse2 => unsafe { copy_sse2(from, to) },
    }
    target[head + body..].copy_from_slice(&source[head + body..]);
}

/// The sum of all whole words; bytes after the last whole word are not read.
pub(crate) fn read(bytes: &[u8]) -> u64 {
    let body = bytes.len() / ROUND * ROUND;
    let sum = match width() {
        // SAFETY: the processor has AVX-512F, as `width` has just asked it.
        Width::Avx512 => unsafe { read_avx512(&bytes[..body]) },
        // SAFETY: as above, with AVX2.
        Width::Avx2 => unsafe { read_avx2(&bytes[..body]) },
        // SAFETY: as above, with SSE2, which every x86-64 processor has.
        Width::Sse2 => unsafe { read_sse2(&bytes[..body]) },
    };
    let words = bytes[body..].chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_ne_bytes);
    words.fold(sum, u64::wrapping_add)
}

/// The loops of one width: the same steps, by other names.
macro_rules! loops {
    (
        $(#[$feature:meta])* $copy:ident, $read:ident, $register:ty, $load:ident, $stream:ident, $store:ident, $zero:ident, $add:ident
    ) => {
        /// The target begins at a multiple of 64, and both are multiples of ROUND long.
        $(#[$feature])*
        fn $copy(source: &[u8], target: &mut [u8]) {
            const STEP: usize = size_of::<$register>();
            for (from, to) in source.chunks_exact(ROUND).zip(target.chunks_exact_mut(ROUND)) {
                let (from, to) = (from.as_ptr().cast::<$register>(), to.as_mut_ptr().cast::<$register>());
                for step in 0..ROUND / STEP {
                    // SAFETY: `step` is within the chunks of ROUND bytes; the load takes any alignment, and the target
                    // is aligned, for it begins so and chunks are multiples of 64 long.
                    unsafe { $stream(to.add(step), $load(from.add(step))) };
                }
            }
            // Later accesses must not overtake the stores.
            _mm_sfence();
        }

        $(#[$feature])*
        fn $read(bytes: &[u8]) -> u64 {
            const STEP: usize = size_of::<$register>();
            let mut sums = [$zero(); 4];
            for chunk in bytes.chunks_exact(ROUND) {
                let from = chunk.as_ptr().cast::<$register>();
                for step in 0..ROUND / STEP {
                    // SAFETY: `step` is within the chunk of ROUND bytes; the load takes any alignment.
                    let loaded = unsafe { $load(from.add(step)) };
                    sums[step % 4] = $add(sums[step % 4], loaded);
                }
            }
            let mut words = [0_u64; STEP / 8];
            let sum = $add($add(sums[0], sums[1]), $add(sums[2], sums[3]));
            // SAFETY: the words are as many bytes as the register; the store takes any alignment.
            unsafe { $store(words.as_mut_ptr().cast(), sum) };
            words.into_iter().fold(0, u64::wrapping_add)
        }
    };
}

loops!(
    #[target_feature(enable = "avx512f")]
    copy_avx512,
    read_avx512,
    __m512i,
    _mm512_loadu_si512,
    _mm512_stream_si512,
    _mm512_storeu_si512,
    _mm512_setzero_si512,
    _mm512_add_epi64
);
loops!(
    #[target_feature(enable = "avx2")]
    copy_avx2,
    read_avx2,
    __m256i,
    _mm256_loadu_si256,
    _mm256_stream_si256,
    _mm256_storeu_si256,
    _mm256_setzero_si256,
    _mm256_add_epi64
);
loops!(
    #[target_feature(enable = "sse2")]
    copy_sse2,
    read_sse2,
    __m128i,
    _mm_loadu_si128,
    _mm_stream_si128,
    _mm_storeu_si128,
    _mm_setzero_si128,
    _mm_add_epi64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_that_the_processor_has_copies_and_reads_alike() {
        let source: Vec<u8> = (0..4 * ROUND + 64).map(|i| (i % 251) as u8).collect();
        let begin = source.as_ptr().align_offset(64);
        let source = &source[begin..begin + 3 * ROUND];
        // SAFETY: every x86-64 processor has SSE2.
        let expected = unsafe { read_sse2(source) };
        let mut target = vec![0_u8; 4 * ROUND];
        let begin = target.as_ptr().align_offset(64);
        let target = &mut target[begin..begin + 3 * ROUND];
        // SAFETY: the same.
        unsafe { copy_sse2(source, target) };
        assert_eq!(target, source);
        if is_x86_feature_detected!("avx2") {
            target.fill(0);
            // SAFETY: the processor has AVX2.
            let sum = unsafe {
                copy_avx2(source, target);
                read_avx2(source)
            };
            assert_eq!((&*target, sum), (source, expected));
        }
        if is_x86_feature_detected!("avx512f") {
            target.fill(0);
            // SAFETY: the processor has AVX-512F.
            let sum = unsafe {
                copy_avx512(source, target);
                read_avx512(source)
            };
            assert_eq!((&*target, sum), (source, expected));
        }
    }
}
