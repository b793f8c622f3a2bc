//! The sequence of x³¹ + x²⁸ + 1: bit *n* is bit *n* − 28 xor bit *n* − 31. Its period is 2³¹ − 1 bits.
//!
//! **Random access.** A step is a linear map of the 31 bits of the state; the maps of 1, 2, 4, … 2³⁰ steps are computed
//! by the compiler, and a jump applies at most 31 of them.
//!
//! **Speed.** Over GF(2) squaring is linear: (x³¹ + x²⁸ + 1)⁶⁴ = x³¹·⁶⁴ + x²⁸·⁶⁴ + 1. So the same recurrence holds
//! between bits that are 64 times as far apart, between whole words: word *n* is word *n* − 28 xor word *n* − 31.

/// Length of the state, and the longer distance of the recurrence.
const LONG: usize = 31;

/// The shorter distance.
const SHORT: usize = 28;

/// Bits after which the sequence repeats.
const PERIOD: u64 = (1 << 31) - 1;

/// State that `1 << bit` becomes after 2^power steps.
const JUMPS: [[u32; LONG]; LONG] = jumps();

const fn jumps() -> [[u32; LONG]; LONG] {
    let mut jumps = [[0; LONG]; LONG];
    let mut bit = 0;
    while bit < LONG {
        let state = 1_u32 << bit;
        jumps[0][bit] = (state >> 1) | (((state ^ (state >> (LONG - SHORT))) & 1) << (LONG - 1));
        bit += 1;
    }
    let mut power = 1;
    while power < LONG {
        let mut bit = 0;
        while bit < LONG {
            jumps[power][bit] = apply(&jumps[power - 1], jumps[power - 1][bit]);
            bit += 1;
        }
        power += 1;
    }
    jumps
}

const fn apply(jump: &[u32; LONG], state: u32) -> u32 {
    let (mut result, mut bit) = (0, 0);
    while bit < LONG {
        // All ones if the bit is set: no branch that the processor could guess wrongly.
        result ^= jump[bit] & ((state >> bit) & 1).wrapping_neg();
        bit += 1;
    }
    result
}

/// The 31 bits from bit `index` on; the sequence begins with 31 ones.
fn state_at(index: u64) -> u32 {
    let ones = (1 << LONG) - 1;
    (0..LONG).filter(|power| index >> power & 1 == 1).fold(ones, |state, power| apply(&JUMPS[power], state))
}

/// Bytes of the sequence from a byte position on; its first bit is bit 0 of the first byte.
pub(super) fn fill(seed: u64, position: u128, bytes: &mut [u8]) {
    let start = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) % PERIOD;
    let index = (u128::from(start) + position * 8) % u128::from(PERIOD);
    let first = first_words(state_at(index as u64));
    let (words, tail) = bytes.as_chunks_mut::<8>();
    for (bytes, word) in words.iter_mut().zip(first) {
        *bytes = word.to_le_bytes();
    }
    let mut done = LONG;
    while done < words.len() {
        let (before, after) = words.split_at_mut(done);
        let before = &before[done - LONG..];
        let more = after.len().min(SHORT);
        for (number, bytes) in after[..more].iter_mut().enumerate() {
            let (long, short) = (before[number], before[number + LONG - SHORT]);
            *bytes = (u64::from_ne_bytes(long) ^ u64::from_ne_bytes(short)).to_ne_bytes();
        }
        done += more;
    }
    if !tail.is_empty() {
        let count = words.len();
        let last = match count {
            0..LONG => first[count],
            _ => u64::from_le_bytes(words[count - LONG]) ^ u64::from_le_bytes(words[count - SHORT]),
        };
        tail.copy_from_slice(&last.to_le_bytes()[..tail.len()]);
    }
}

/// The first words, from which the others follow.
fn first_words(state: u32) -> [u64; LONG] {
    let mut words = [0; LONG];
    let (mut state, mut bit) = (u64::from(state), 0);
    while bit < LONG * 64 {
        // 28 bits at once: these do not depend on each other.
        let next = state & ((1 << SHORT) - 1);
        words[bit / 64] |= next << (bit % 64);
        if bit % 64 + SHORT > 64 && bit / 64 + 1 < LONG {
            words[bit / 64 + 1] |= next >> (64 - bit % 64);
        }
        let new = (state ^ (state >> (LONG - SHORT))) & ((1 << SHORT) - 1);
        state = (state >> SHORT) | (new << (LONG - SHORT));
        bit += SHORT;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn by_definition(bits: usize) -> Vec<u8> {
        let mut sequence = vec![1_u8; LONG];
        while sequence.len() < bits {
            let n = sequence.len();
            sequence.push(sequence[n - SHORT] ^ sequence[n - LONG]);
        }
        sequence.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect()
    }

    #[test]
    fn the_sequence_is_that_of_the_polynomial_from_every_byte_on() {
        let expected = by_definition(8 * 3000);
        for from in [0, 1, 7, 8, 300, 1000] {
            for length in [0, 1, 7, 8, 9, 240, 248, 249, 256, 1999] {
                let mut bytes = vec![0; length];
                fill(0, from as u128, &mut bytes);
                assert_eq!(bytes, expected[from..from + length], "{length} bytes from {from}");
            }
        }
    }

    #[test]
    fn the_sequence_repeats_after_its_period_and_not_before() {
        assert_eq!(state_at(PERIOD), state_at(0));
        // 2³¹−1 is prime, so a shorter period would be 1.
        assert_ne!(state_at(1), state_at(0));
        let (mut here, mut there) = ([0; 100], [0; 100]);
        fill(5, 17, &mut here);
        fill(5, 17 + u128::from(PERIOD), &mut there);
        assert_eq!(here, there);
    }
}
