//! Frames of FLAC whose checksums are right: any bytes stand in place of the subframes. Samples that the encoder takes come back from its own frame as
//! they were decoded.

use hairspring_record::flac::{BLOCK, Encoder, Form, decoded, sealed};

use crate::Input;

const BITS: [u32; 4] = [8, 16, 24, 32];

/// Checks what the module promises.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (form, assignment) = (input.byte(), u64::from(input.byte() & 15));
    let form = Form { rate_hz: 48_000, channels: u32::from(form & 7) + 1, bits: BITS[usize::from(form >> 3 & 3)] };
    let length = usize::from(input.short()) % BLOCK + 1;
    let Some(frame) = sealed(form, length, assignment, input.0) else { return };
    let columns = decoded(form, length, &frame).expect("its subframes were decoded before");
    assert!(columns.iter().all(|column| column.len() == length), "{length}");
    let rows = (0..length).flat_map(|row| columns.iter().map(move |column| i32::try_from(column[row])));
    // Two channels of which one is stored as a difference can have samples beyond their size.
    let Ok(rows) = rows.collect::<Result<Vec<i32>, _>>() else { return };
    let mut again = Vec::new();
    if Encoder::new(form).encode(&rows, &mut again).is_ok() {
        assert_eq!(decoded(form, length, &again), Some(columns));
    }
}
