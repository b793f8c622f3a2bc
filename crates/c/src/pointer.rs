//! Arguments of a C caller: places for results, structures to read, texts.
//!
//! A pointer from C can only be checked for NULL and for its alignment. The caller promises that it points to what the
//! header states. The unsafe blocks here and in `handle.rs` rely on that promise; no others do.

#![expect(unsafe_code, reason = "reads and writes where a C caller points")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use hairspring_time::Nanos;

use crate::error::{Failure, HS_E_NAN, HS_E_NEGATIVE, HS_E_NULL, HS_E_RANGE, HS_E_TEXT};

/// A place for a result.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// A required place.
    pub(crate) fn new(pointer: *mut T) -> Result<Self, Failure> {
        Self::found(pointer)
            .ok_or_else(|| Failure::new(HS_E_NULL, "write a result: its place is NULL or not aligned for its type"))
    }

    /// A required place, without a sentence if it is none.
    #[inline(always)]
    pub(crate) fn found(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).filter(|pointer| pointer.is_aligned()).map(Self)
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
        // SAFETY: not NULL and aligned, as `new` saw; the header asks the caller for a structure of this type with its
        // size set, and whatever is in it is one of this type.
        unsafe { self.0.read() }
    }

    pub(crate) fn put(&self, value: T) {
        // SAFETY: not NULL and aligned, as `new` saw; the header asks the caller for a place of this type that may be
        // written to.
        unsafe { self.0.write(value) };
    }
}

/// A structure for which any bytes are valid: plain numbers, and no `bool`, which has only two valid values.
///
/// # Safety
/// Any bytes are a valid value of the type.
pub(crate) unsafe trait Numbers: Copy {}

/// The largest structure that is looked at, so that a size that was never set does not lead far away.
const MOST_BYTES: usize = 4_096;

/// A structure that begins with its size in bytes, which its caller sets to `sizeof`. A later header may have more
/// fields at the end; zero in one of them means what was meant before the field was there. So programs of an older
/// header work with this library, and those of a newer one, too, as long as they ask for nothing that this library does
/// not know.
///
/// # Safety
/// It is `repr(C)`, and its first field is its size, a `usize`.
pub(crate) unsafe trait Growing: Numbers {
    /// Its name in a sentence.
    const NAME: &'static str;
    /// The size of its first version.
    const FIRST_BYTES: usize;
}

/// Looks at a required growing structure: its size.
fn size_at<T: Growing>(pointer: *const T) -> Result<usize, Failure> {
    // The size alone: the structure may end after the first version's last field.
    let size_bytes = read(pointer.cast::<usize>())?;
    if (T::FIRST_BYTES..=MOST_BYTES).contains(&size_bytes) {
        return Ok(size_bytes);
    }
    let text = format!(
        "take {} of {size_bytes} bytes: set its size to sizeof, which is {} in this library's header",
        T::NAME,
        size_of::<T>()
    );
    Err(Failure::new(HS_E_RANGE, text))
}

// SAFETY: a single number, for which any bytes are valid.
unsafe impl Numbers for usize {}

/// Reads a required structure of this header or another. Fields that an older header does not have are zero.
pub(crate) fn read_growing<T: Growing>(pointer: *const T) -> Result<T, Failure> {
    let size_bytes = size_at(pointer)?;
    let known_bytes = size_bytes.min(size_of::<T>());
    // SAFETY: not NULL, as `size_at` saw, and any address is aligned for bytes; the header asks the caller for
    // `size_bytes` bytes.
    let given = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size_bytes) };
    if given[known_bytes..].iter().any(|&byte| byte != 0) {
        let text = format!(
            "take {} of {size_bytes} bytes: a field beyond the {known_bytes} that this library knows is not zero; use a newer library",
            T::NAME
        );
        return Err(Failure::new(HS_E_RANGE, text));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both hold at least `known_bytes` bytes, and do not overlap; any bytes are a value of the type.
    unsafe {
        std::ptr::copy_nonoverlapping(given.as_ptr(), value.as_mut_ptr().cast::<u8>(), known_bytes);
        Ok(value.assume_init())
    }
}

/// A place for a structure of this header or another.
pub(crate) struct GrowingPlace<T> {
    start: NonNull<T>,
    size_bytes: usize,
}

impl<T: Growing> GrowingPlace<T> {
    /// A required place.
    pub(crate) fn new(pointer: *mut T) -> Result<Self, Failure> {
        let Place(start) = Place::new(pointer)?;
        Ok(Self { start, size_bytes: size_at(pointer)? })
    }

    /// An optional place: NULL if the result is not wanted.
    pub(crate) fn wanted(pointer: *mut T) -> Result<Option<Self>, Failure> {
        if pointer.is_null() { Ok(None) } else { Self::new(pointer).map(Some) }
    }

    /// Writes all but the size, which stays the caller's: the fields that the caller's header has, and zeros into those
    /// that this library does not know.
    pub(crate) fn put(&self, value: T) {
        let (first, known_bytes) = (size_of::<usize>(), self.size_bytes.min(size_of::<T>()));
        let (to, from) = (self.start.as_ptr().cast::<u8>(), (&raw const value).cast::<u8>());
        // SAFETY: `size_at` saw a size of at least the first version's; the header asks the caller for that many
        // writable bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(from.add(first), to.add(first), known_bytes - first);
            std::ptr::write_bytes(to.add(known_bytes), 0, self.size_bytes - known_bytes);
        }
    }
}

/// Reads a required structure.
pub(crate) fn read<T: Numbers>(pointer: *const T) -> Result<T, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Failure::new(HS_E_NULL, "read an argument: it is NULL or not aligned for its type"));
    }
    // SAFETY: not NULL and aligned; the header asks the caller for a structure of this size, and whatever is in it is
    // one of this type.
    Ok(unsafe { *pointer })
}

/// Room for bytes that a call writes.
pub(crate) fn room<'a>(pointer: *mut c_void, bytes: usize) -> Result<&'a mut [u8], Failure> {
    let start = NonNull::new(pointer.cast::<u8>()).filter(|_| isize::try_from(bytes).is_ok());
    let start =
        start.ok_or_else(|| Failure::new(HS_E_NULL, "write bytes: their place is NULL, or larger than memory"))?;
    // SAFETY: not NULL, and any address is aligned for bytes; the header asks the caller for `bytes` writable bytes
    // that no other code uses during the call.
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
    // SAFETY: not NULL and aligned; the header asks the caller for `count` of them, which no other thread changes
    // during the call, and any bytes are a valid number or address.
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

    /// A structure as it was, as it is, and as it will be.
    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Structure<const N: usize> {
        size: usize,
        fields: [u64; N],
    }

    // SAFETY: words and nothing else.
    unsafe impl<const N: usize> Numbers for Structure<N> {}

    // SAFETY: `repr(C)`, with `size` before the fields.
    unsafe impl Growing for Structure<2> {
        const NAME: &'static str = "a structure";
        const FIRST_BYTES: usize = 16;
    }

    fn of<const N: usize>(fields: [u64; N]) -> Structure<N> {
        Structure { size: size_of::<Structure<N>>(), fields }
    }

    #[test]
    fn structures_of_older_and_newer_headers_are_read_as_they_were_meant() {
        let read = |pointer: *const Structure<2>| read_growing(pointer).map(|read| read.fields).map_err(Failure::tell);
        let (of_one, of_two, of_zeros, of_more) = (of([7]), of([7, 8]), of([7, 8, 0, 0]), of([7, 8, 0, 1 << 63]));
        assert_eq!(read(&raw const of_two), Ok([7, 8]));
        assert_eq!(read((&raw const of_one).cast()), Ok([7, 0]), "what an old header lacks is zero");
        assert_eq!(read((&raw const of_zeros).cast()), Ok([7, 8]), "a new header that asks for nothing new");
        assert_eq!(read((&raw const of_more).cast()), Err(HS_E_RANGE), "one that does");
        for size in [0, 8, 15, 4_097, usize::MAX] {
            let unset = Structure { size, fields: [0; 2] };
            assert_eq!(read(&raw const unset), Err(HS_E_RANGE), "{size}");
        }
        assert_eq!(read(std::ptr::null()), Err(HS_E_NULL));
    }

    #[test]
    fn structures_of_older_and_newer_headers_are_written_as_far_as_they_go() {
        let (mut old, mut own, mut new) = (of([1]), of([1, 1]), of([1, 1, 1]));
        // Bytes behind an old structure must stay.
        let mut both = [of([1]), of([1])];
        for pointer in [&raw mut own, (&raw mut old).cast(), (&raw mut new).cast(), both.as_mut_ptr().cast()] {
            GrowingPlace::new(pointer).unwrap().put(Structure { size: 99, fields: [5, 6] });
        }
        assert_eq!((old, own, new), (of([5]), of([5, 6]), of([5, 6, 0])));
        assert_eq!(both, [of([5]), of([1])]);
        old.size = 8;
        assert_eq!(GrowingPlace::<Structure<2>>::new((&raw mut old).cast()).map(drop).unwrap_err().tell(), HS_E_RANGE);
    }

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
