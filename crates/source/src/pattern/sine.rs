//! A sine by direct digital synthesis: an integer phase, and a table of one turn.

use super::word::Shape;

/// Entries of the table, a power of two.
const ENTRIES: usize = 4096;

/// Phase increment per frame; 2³² is one turn. It is odd, so the data repeat after 2³² frames.
const STEP: u32 = 4_294_967;

/// Phase increment per channel: an eighth of a turn.
const CHANNEL_STEP: u32 = 1 << 29;

/// One turn; full scale is 2³¹ − 1.
static TABLE: [i32; ENTRIES] = table();

const fn table() -> [i32; ENTRIES] {
    let mut table = [0; ENTRIES];
    let quarter = ENTRIES / 4;
    let mut entry = 0;
    while entry <= quarter {
        let x = std::f64::consts::TAU * entry as f64 / ENTRIES as f64;
        let value = (taylor(x) * 2_147_483_647.0 + 0.5) as i32;
        table[entry] = value;
        table[ENTRIES / 2 - entry] = value;
        table[ENTRIES / 2 + entry] = -value;
        if entry > 0 {
            table[ENTRIES - entry] = -value;
        }
        entry += 1;
    }
    table
}

/// The sine of 0 … π/2, from additions, multiplications and divisions only: the library's sine may differ in the last
/// bit from one system to the next.
const fn taylor(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while n < 12.0 {
        term = -term * x * x / ((2.0 * n) * (2.0 * n + 1.0));
        sum += term;
        n += 1.0;
    }
    sum
}

/// The value at a frame, of full scale 2³¹ − 1.
pub(super) fn value(frame: u64, channel: u64) -> i32 {
    let phase = (frame as u32).wrapping_mul(STEP).wrapping_add((channel as u32).wrapping_mul(CHANNEL_STEP));
    TABLE[(phase >> (32 - ENTRIES.trailing_zeros())) as usize]
}

/// Fills whole frames of words of `width` bytes.
pub(super) fn fill(channels: usize, frame: u64, shape: Shape, width: usize, bytes: &mut [u8]) {
    for (number, samples) in bytes.chunks_exact_mut(channels * width).enumerate() {
        let frame = frame.wrapping_add(number as u64);
        for (channel, sample) in samples.chunks_exact_mut(width).enumerate() {
            let code = shape.code_of(value(frame, channel as u64));
            sample.copy_from_slice(&code.to_le_bytes()[..width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_a_sine() {
        for (entry, value) in TABLE.iter().enumerate() {
            let expected = (std::f64::consts::TAU * entry as f64 / ENTRIES as f64).sin();
            assert!((f64::from(*value) / 2_147_483_647.0 - expected).abs() < 1e-9, "{entry}");
        }
        assert_eq!((TABLE[0], TABLE[ENTRIES / 4], TABLE[ENTRIES / 2]), (0, i32::MAX, 0));
    }
}
