//! The parts that depend on the processor: copies that bypass the caches, and reads as wide as its registers. And those
//! that depend on the system: its chapters, and the names of its clocks and sleeps.
//!
//! Equal names in both files for processors: `Stores` selects the instructions of this processor and copies with them;
//! `Loads` does the same for reading. Equal names in both for systems: `READS`, `STEPS`, `METHODS`, `PROGRAMS`,
//! `chapters`, `disturbance`, `Means`, `SentDisks`, `measure`, `notes`.

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux as system;
#[cfg(target_os = "windows")]
pub(crate) mod windows;
#[cfg(target_os = "windows")]
pub(crate) use windows as system;

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod nt_aarch64;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod nt_x86_64;

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub(crate) use nt_aarch64::{copy, loads, read, stores};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use nt_x86_64::{copy, loads, read, stores};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the suite knows the non-temporal stores of x86_64 and aarch64 only");

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Bytes with a period that does not divide a power of two.
    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn every_byte_is_copied_and_no_other_at_any_length_and_alignment() {
        let source = pattern(4096 + 256);
        for length in (0..300).chain([511, 512, 513, 1024, 4000, 4096]) {
            for (from, to) in [(0, 0), (0, 1), (1, 0), (7, 33), (63, 64), (64, 63)] {
                let mut target = vec![0xee_u8; 4096 + 256];
                copy(&source[from..from + length], &mut target[to..to + length]);
                assert_eq!(target[to..to + length], source[from..from + length], "{length} from {from} to {to}");
                let around = target[..to].iter().chain(&target[to + length..]);
                assert!(around.copied().all(|byte| byte == 0xee), "{length} from {from} to {to}");
            }
        }
    }

    #[test]
    fn reading_takes_every_word_into_the_sum() {
        for length in (0..700).step_by(8) {
            let mut bytes = vec![0_u8; length];
            assert_eq!(read(&bytes), 0);
            for word in (0..length).step_by(8) {
                bytes[word] = 1;
            }
            assert_eq!(read(&bytes), (length / 8) as u64, "{length}");
        }
    }

    #[test]
    #[should_panic(expected = "as long as the source")]
    fn a_target_of_another_length_is_refused() {
        copy(&[0; 8], &mut [0; 9]);
    }
}
