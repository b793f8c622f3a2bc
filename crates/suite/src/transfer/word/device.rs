//! A window of 32-bit words as a device maps it: accessed word by word, volatile, with a status word that reports
//! errors.

#![expect(unsafe_code, reason = "volatile accesses to mapped memory")]

use std::marker::PhantomData;
use std::ptr::NonNull;

use hairspring_ring::Memory;

/// Why a checked access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The word is beyond the window.
    Outside(usize),
    /// The device reports an error.
    Status(u32),
}

/// Anything that words can be read from and written to.
pub(super) trait Bus {
    fn read(&self, word: usize) -> u32;
    fn write(&self, word: usize, value: u32);
    fn try_read(&self, word: usize) -> Result<u32, Fault>;
    fn try_write(&self, word: usize, value: u32) -> Result<(), Fault>;
}

/// The mapped words; the last one is the status. The window borrows them exclusively.
pub(super) struct Window<'m> {
    address: NonNull<u32>,
    words: usize,
    memory: PhantomData<&'m mut Memory>,
}

impl<'m> Window<'m> {
    /// All of a memory, whose bytes are zero at first: no error.
    pub(super) fn new(memory: &'m mut Memory) -> Self {
        let words = usize::try_from(memory.size().0).unwrap_or(0) / size_of::<u32>();
        Self { address: memory.address().cast(), words, memory: PhantomData }
    }

    /// The word's address, with the number taken modulo that of the words: the mask of the address lines, as on a bus.
    /// There is at least one page of them.
    #[inline(always)]
    fn place(&self, word: usize) -> NonNull<u32> {
        // SAFETY: the remainder is below the number of words, all of which are within the mapping that `new` was given.
        unsafe { self.address.add(word & (self.words - 1)) }
    }

    /// Sets the status, as a device does on an error.
    #[cfg(test)]
    pub(super) fn fail(&self, status: u32) {
        self.write(self.words - 1, status);
    }

    #[inline(always)]
    fn status(&self) -> Result<(), Fault> {
        match self.read(self.words - 1) {
            0 => Ok(()),
            status => Err(Fault::Status(status)),
        }
    }

    #[inline(always)]
    fn inside(&self, word: usize) -> Result<(), Fault> {
        if word < self.words { Ok(()) } else { Err(Fault::Outside(word)) }
    }

    #[inline(always)]
    pub(super) fn read(&self, word: usize) -> u32 {
        // SAFETY: the place is within the mapping and aligned, for a page is. The window has the memory alone, and
        // every access to it is volatile and through this type, on one thread: a NonNull is neither Send nor Sync.
        unsafe { self.place(word).read_volatile() }
    }

    #[inline(always)]
    pub(super) fn write(&self, word: usize, value: u32) {
        // SAFETY: as for reading.
        unsafe { self.place(word).write_volatile(value) }
    }

    #[inline(always)]
    pub(super) fn try_read(&self, word: usize) -> Result<u32, Fault> {
        self.inside(word)?;
        let value = self.read(word);
        self.status().map(|()| value)
    }

    #[inline(always)]
    pub(super) fn try_write(&self, word: usize, value: u32) -> Result<(), Fault> {
        self.inside(word)?;
        self.write(word, value);
        self.status()
    }
}

impl Bus for Window<'_> {
    fn read(&self, word: usize) -> u32 {
        Window::read(self, word)
    }

    fn write(&self, word: usize, value: u32) {
        Window::write(self, word, value);
    }

    fn try_read(&self, word: usize) -> Result<u32, Fault> {
        Window::try_read(self, word)
    }

    fn try_write(&self, word: usize, value: u32) -> Result<(), Fault> {
        Window::try_write(self, word, value)
    }
}

#[cfg(test)]
mod tests {
    use hairspring_ring::{Bytes, Pages};

    use super::*;

    #[test]
    fn checked_accesses_tell_words_outside_and_the_status_of_the_device() {
        let mut memory = Memory::plain(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("a page");
        let window = Window::new(&mut memory);
        assert_eq!(window.try_write(5, 7), Ok(()));
        assert_eq!((window.try_read(5), window.read(5), window.read(6)), (Ok(7), 7, 0));
        assert_eq!(
            (window.try_read(1024), window.try_write(1024, 1)),
            (Err(Fault::Outside(1024)), Err(Fault::Outside(1024)))
        );
        window.fail(3);
        assert_eq!((window.try_read(5), window.try_write(5, 8)), (Err(Fault::Status(3)), Err(Fault::Status(3))));
    }
}
