//! Arguments of a C caller: places for results, structures to read, texts.
//!
//! A pointer from C can only be checked for NULL and for its alignment. The caller promises that it points to what the header
//! states. The unsafe blocks here and in `handle.rs` rely on that promise; no others do.

#![expect(unsafe_code, reason = "reads and writes where a C caller points")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use hairspring_time::Nanos;

use crate::error::{Failure, HS_E_NAN, HS_E_NEGATIVE, HS_E_NULL, HS_E_RANGE, HS_E_TEXT};

/// A place for a result.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// A required place.
    pub(crate) fn new(pointer: *mut T) -> Result<Self, Failure> {
        let suits = NonNull::new(pointer).filter(|pointer| pointer.is_aligned());
        suits
            .map(Self)
            .ok_or_else(|| Failure::new(HS_E_NULL, "write a result: its place is NULL or not aligned for its type"))
    }

    /// An optional place: NULL if the result is not wanted.
    pub(crate) fn wanted(pointer: *mut T) -> Result<Option<Self>, Failure> {
        if pointer.is_null() { Ok(None) } else { Self::new(pointer).map(Some) }
    }

    /// Reads the place of a structure whose first field the caller sets.
    pub(crate) fn holds(&self) -> T
    where
        T: Numbers,
    {
        // SAFETY: not NULL and aligned, as `new` saw; the header asks the caller for a structure of this type with its size set, and whatever
        // is in it is one of this type.
        unsafe { self.0.read() }
    }

    pub(crate) fn put(&self, value: T) {
        // SAFETY: not NULL and aligned, as `new` saw; the header asks the caller for a place of this type that may be written to.
        unsafe { self.0.write(value) };
    }
}

/// A structure for which any bytes are valid: plain numbers, and no `bool`, which has only two valid values.
///
/// # Safety
/// Any bytes are a valid value of the type.
pub(crate) unsafe trait Numbers: Copy {}

/// Reads a required structure.
pub(crate) fn read<T: Numbers>(pointer: *const T) -> Result<T, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Failure::new(HS_E_NULL, "read an argument: it is NULL or not aligned for its type"));
    }
    // SAFETY: not NULL and aligned; the header asks the caller for a structure of this size, and whatever is in it is one of this type.
    Ok(unsafe { *pointer })
}

/// Room for bytes that a call writes.
pub(crate) fn room<'a>(pointer: *mut c_void, bytes: usize) -> Result<&'a mut [u8], Failure> {
    let start = NonNull::new(pointer.cast::<u8>()).filter(|_| isize::try_from(bytes).is_ok());
    let start =
        start.ok_or_else(|| Failure::new(HS_E_NULL, "write bytes: their place is NULL, or larger than memory"))?;
    // SAFETY: not NULL, and any address is aligned for bytes; the header asks the caller for so many bytes that may be written to, and that
    // nobody else uses during the call.
    Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })
}

/// Bytes that a call reads.
pub(crate) fn bytes_at<'a>(pointer: *const c_void, count: usize) -> Result<&'a [u8], Failure> {
    list(pointer.cast::<u8>(), count)
}

/// A list that a call reads: of bytes, or of addresses.
pub(crate) fn list<'a, T: Copy>(pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if pointer.is_null() || !pointer.is_aligned() || isize::try_from(count.saturating_mul(size_of::<T>())).is_err() {
        return Err(Failure::new(
            HS_E_NULL,
            "read a list: it is NULL, not aligned for its type, or larger than memory",
        ));
    }
    // SAFETY: not NULL and aligned; the header asks the caller for so many of them, which nobody changes during the call, and any bytes are a
    // valid number or address.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Refuses a structure whose size differs from this library's, because it comes from another header.
pub(crate) fn is_of_size<T>(what: &str, size_bytes: usize) -> Result<(), Failure> {
    if size_bytes == size_of::<T>() {
        return Ok(());
    }
    let own = size_of::<T>();
    let text =
        format!("take {what} of {size_bytes} bytes: set its size to sizeof, which is {own} in this library's header");
    Err(Failure::new(HS_E_RANGE, text))
}

/// Reads a required text.
pub(crate) fn text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    let given = optional_text(pointer)?;
    given.ok_or_else(|| Failure::new(HS_E_NULL, "read a text: it is NULL"))
}

/// Reads an optional text, which may be NULL.
pub(crate) fn optional_text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL; the header asks the caller for a text that ends in a NUL and stays as it is during the call.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    let text = bytes.to_str().map_err(|_| Failure::new(HS_E_TEXT, "read a text: it is not UTF-8"))?;
    Ok(Some(text))
}

/// Microseconds as a span, rounded up to whole nanoseconds, so that a delay is not early by the rounding.
pub(crate) fn micros(us: f64) -> Result<Nanos, Failure> {
    let ns = (us * 1e3).ceil();
    if us.is_nan() {
        Err(Failure::new(HS_E_NAN, "take a number of microseconds: it is NaN"))
    } else if us < 0.0 {
        Err(Failure::new(HS_E_NEGATIVE, format!("wait for {us} us: it is negative")))
    } else if ns >= i64::MAX as f64 {
        Err(Failure::new(HS_E_RANGE, format!("wait for {us} us: more than 100 days counts as a mistake")))
    } else {
        Ok(Nanos::new(ns as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_rounded_up_and_refused_where_they_mean_nothing() {
        for (us, ns) in [(0.0, 0), (-0.0, 0), (1.0, 1_000), (0.000_1, 1), (1.5, 1_500), (1e9, 1_000_000_000_000)] {
            assert_eq!(micros(us).unwrap(), Nanos::new(ns), "{us}");
        }
        for (us, code) in
            [(f64::NAN, HS_E_NAN), (-1e-9, HS_E_NEGATIVE), (f64::INFINITY, HS_E_RANGE), (1e18, HS_E_RANGE)]
        {
            assert_eq!(micros(us).unwrap_err().tell(), code, "{us}");
        }
        assert_eq!(micros(f64::NEG_INFINITY).unwrap_err().tell(), HS_E_NEGATIVE);
    }
}
