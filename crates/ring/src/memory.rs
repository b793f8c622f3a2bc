//! [`Memory`]: a buffer on pages of a chosen size, plain or mapped twice in a row.
//!
//! **Problem.** Data should go from a ring to the disk without a copy, also if a block wraps around the end. The page
//! size affects the speed of access (Spectrum's AN006 calls these "user" and "continuous" buffers).
//!
//! **Solution.** The same pages are mapped twice in a row, so every piece of the ring is contiguous.
//!
//! ```text
//! addresses   0 ............ N ............ 2N
//! pages       [0 1 2 3 4 5 6 7][0 1 2 3 4 5 6 7]
//!                        └ a piece over the seam ┘
//! ```
//!
//! **The granted pages are read back**, not assumed, because the kernel may silently give small pages instead of huge
//! ones. If the size is unavailable, it is halved until the kernel grants it, as Spectrum's driver does. [`Granted`]
//! lists each step down.

#![expect(unsafe_code, reason = "mapping memory")]

mod view;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::param::page_size;

use crate::units::Bytes;

pub use view::View;

/// The kind of pages of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// The machine's ordinary pages, 4 KiB on x86.
    Small,
    /// Ordinary memory that the kernel backs with huge pages automatically if it can (transparent huge pages).
    Transparent,
    /// Reserved 2 MiB pages (hugetlb).
    Huge2M,
    /// Reserved 1 GiB pages (hugetlb).
    Huge1G,
}

impl Pages {
    /// Every kind, the smallest first.
    pub const ALL: [Self; 4] = [Self::Small, Self::Transparent, Self::Huge2M, Self::Huge1G];

    /// Its name in ids, JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Transparent => "thp",
            Self::Huge2M => "huge2m",
            Self::Huge1G => "huge1g",
        }
    }

    /// Sizes are rounded up to this.
    pub fn size(self) -> Bytes {
        match self {
            Self::Small => Bytes(page_size() as u64),
            Self::Transparent | Self::Huge2M => Bytes::mib(2),
            Self::Huge1G => Bytes::gib(1),
        }
    }

    /// The kind to fall back to if this one is unavailable.
    fn weaker(self) -> Option<Self> {
        match self {
            Self::Small => None,
            Self::Transparent => Some(Self::Small),
            Self::Huge2M => Some(Self::Transparent),
            Self::Huge1G => Some(Self::Huge2M),
        }
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Small => "small pages",
            Self::Transparent => "transparent huge pages",
            Self::Huge2M => "2 MiB pages",
            Self::Huge1G => "1 GiB pages",
        })
    }
}

/// The memory that the kernel granted, and the refusals on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The size, a multiple of the page size.
    pub size: Bytes,
    /// The pages, as the kernel shows them in `/proc/self/smaps`.
    pub pages: Pages,
    /// The requests that were refused, in order, each with the reason.
    pub refused: Vec<String>,
}

/// The kernel did not even grant the smallest acceptable memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryError {
    /// The smallest acceptable size.
    pub least: Bytes,
    /// Everything that was tried.
    pub refused: Vec<String>,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allocate at least {} of memory for the buffer: {}", self.least, self.refused.join("; "))
    }
}

impl std::error::Error for MemoryError {}

/// One buffer may take this share of the free memory; the machine needs the rest.
const MOST_OF_FREE: f64 = 0.75;

/// A buffer. Its bytes are zero at first, and all its pages are present, so that no access causes a page fault.
#[derive(Debug)]
pub struct Memory {
    address: NonNull<u8>,
    /// Accessible bytes from `address` on: the size, or twice the size if it is mirrored.
    reach: usize,
    granted: Granted,
    /// The file behind a mirrored memory.
    file: Option<OwnedFd>,
    /// Whether a ring uses this memory.
    lent: AtomicBool,
}

// SAFETY: a Memory is an address range that stays mapped as long as it lives; it gives out raw pointers only, and the
// ring's cursors and the stores decide which thread may use which bytes when.
unsafe impl Send for Memory {}
// SAFETY: as above; the methods do not touch the bytes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory mapped twice in a row, for a ring.
    ///
    /// # Errors
    /// The kernel did not grant `least`.
    pub fn mirrored(size: Bytes, least: Bytes, pages: Pages) -> Result<Self, MemoryError> {
        Self::descend(size, least, pages, true)
    }

    /// Memory mapped once, private to the process.
    ///
    /// # Errors
    /// The kernel did not grant `least`.
    pub fn plain(size: Bytes, least: Bytes, pages: Pages) -> Result<Self, MemoryError> {
        Self::descend(size, least, pages, false)
    }

    /// Memory for data that a disk reads once: mapped once, private, its pages allocated at the first access.
    /// [`Granted::pages`] are the requested ones, not read back.
    ///
    /// # Errors
    /// The kernel did not grant it, or it is more than three quarters of the free memory.
    pub fn unfilled(size: Bytes, pages: Pages) -> Result<Self, MemoryError> {
        let size = size.round_up(pages.size());
        let mapped = enough(size).and_then(|()| {
            let length = usize::try_from(size.0).map_err(|_| Errno::NOMEM)?;
            let at = if pages == Pages::Transparent { Some(aligned(length, pages)?) } else { None };
            Ok((reserve(at, length, MapFlags::PRIVATE, None, pages)?, length))
        });
        match mapped {
            Ok((address, reach)) => {
                let granted = Granted { size, pages, refused: Vec::new() };
                Ok(Self { address, reach, granted, file: None, lent: AtomicBool::new(false) })
            }
            Err(error) => Err(MemoryError { least: size, refused: vec![format!("{size} on {pages}: {error}")] }),
        }
    }

    /// Halves the size until it fits, then falls back to smaller pages.
    fn descend(size: Bytes, least: Bytes, asked: Pages, mirrored: bool) -> Result<Self, MemoryError> {
        let mut refused = Vec::new();
        let mut kind = Some(asked);
        while let Some(pages) = kind {
            let mut size = size.round_up(pages.size());
            while size >= least.round_up(pages.size()) && size.0 > 0 {
                match Self::map(size, pages, mirrored) {
                    Ok((address, reach, file)) => {
                        let mut memory = Self {
                            address,
                            reach,
                            granted: Granted { size, pages, refused },
                            file,
                            lent: AtomicBool::new(false),
                        };
                        memory.read_back(pages);
                        return Ok(memory);
                    }
                    Err(error) => refused.push(format!("{size} on {pages}: {error}")),
                }
                if size == pages.size() {
                    break;
                }
                size = Bytes(size.0 / 2).round_up(pages.size());
            }
            kind = pages.weaker();
        }
        Err(MemoryError { least, refused })
    }

    fn map(size: Bytes, pages: Pages, mirrored: bool) -> io::Result<(NonNull<u8>, usize, Option<OwnedFd>)> {
        let (hugetlb, in_file) = match pages {
            Pages::Huge2M => (MapFlags::HUGETLB | MapFlags::HUGE_2MB, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB),
            Pages::Huge1G => (MapFlags::HUGETLB | MapFlags::HUGE_1GB, MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB),
            Pages::Small | Pages::Transparent => (MapFlags::empty(), MemfdFlags::empty()),
        };
        if hugetlb.is_empty() {
            enough(size)?;
        }
        let length = usize::try_from(size.0).map_err(|_| Errno::NOMEM)?;
        if !mirrored {
            // All other pages are aligned at any address that the kernel chooses.
            let at = if pages == Pages::Transparent { Some(aligned(length, pages)?) } else { None };
            return Ok((place(at, length, MapFlags::PRIVATE | hugetlb, None, pages)?, length, None));
        }
        let file = memfd_create(c"hairspring-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | in_file)?;
        ftruncate(&file, size.0)?;
        let reach = length.checked_mul(2).ok_or(Errno::NOMEM)?;
        // Unavailable pages cause an error here, before a reservation is mapped over.
        unmap(place(None, length, MapFlags::SHARED, Some(file.as_fd()), pages)?, length);
        let base = aligned(reach, pages)?;
        for half in [0, length] {
            // SAFETY: `half` is within the range that was reserved just above, so the address is not null.
            let address = unsafe { base.add(half) };
            if let Err(error) = place(Some(address), length, MapFlags::SHARED, Some(file.as_fd()), pages) {
                // SAFETY: the other half lies within the same reservation.
                unmap(unsafe { base.add(length - half) }, length);
                return Err(error);
            }
        }
        Ok((base, reach, Some(file)))
    }

    /// The pages that the kernel really gave, as it reports them.
    fn read_back(&mut self, asked: Pages) {
        // Skip the slow read of the whole file for a memory that has no room for a large page.
        if self.granted.size < Pages::Transparent.size() {
            return;
        }
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let (found, huge) = pages_at(&smaps, self.address.as_ptr() as usize).unwrap_or((Pages::Small, Bytes(0)));
        if found != asked {
            let which = match asked {
                Pages::Transparent if self.file.is_some() => "; see /sys/kernel/mm/transparent_hugepage/shmem_enabled",
                Pages::Transparent => "; see /sys/kernel/mm/transparent_hugepage/enabled",
                _ => "",
            };
            let some = if huge.0 > 0 { format!("{huge} only, and others") } else { "others".to_owned() };
            self.granted.refused.push(format!("{} on {asked}: the kernel gave {some}{which}", self.granted.size));
        }
        self.granted.pages = found;
    }

    /// Lends the memory to a ring; `false` if a ring uses it already.
    pub(crate) fn lend(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`; the last ring's accesses are over.
        !self.lent.swap(true, Ordering::Acquire)
    }

    /// The ring gives the memory back.
    pub(crate) fn give_back(&self) {
        // Release: pairs with the Acquire in `lend`.
        self.lent.store(false, Ordering::Release);
    }

    /// The granted memory.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// The size. A mirrored memory is accessible over twice as many bytes.
    pub fn size(&self) -> Bytes {
        self.granted.size
    }

    /// Accessible bytes from [`Memory::address`] on.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// The address of the first byte, aligned to the page size. Valid as long as this value lives.
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// A read-only view of a mirrored memory, as in another process. `None` for a plain memory or if the kernel
    /// refuses.
    pub fn view(&self) -> Option<View> {
        View::map(self.file.as_ref()?, self.granted.size).ok()
    }

    /// The file behind a mirrored memory, sealed so that others can only read it.
    pub(crate) fn sealed(&self) -> io::Result<OwnedFd> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        seal(file)?;
        file.try_clone()
    }
}

/// Seals a file in memory against changes of length, writes and new writable mappings, and verifies the seals.
pub(crate) fn seal(file: &OwnedFd) -> io::Result<()> {
    let seals = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    match fcntl_add_seals(file, seals) {
        // Sealed before: the seals cannot be changed.
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    // SAFETY: maps a file at an address of the kernel's choice; nothing that exists is touched.
    match unsafe { mmap(std::ptr::null_mut(), 1, ProtFlags::WRITE, MapFlags::SHARED, file, 0) } {
        Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(address) => {
            // SAFETY: the mapping was made above and not yet handed out. The kernel rounds its length up to a page.
            let _ = unsafe { munmap(address, 1) };
            Err(io::Error::other(
                "the kernel lets a sealed file be mapped for writing; use small pages, or a newer kernel",
            ))
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unmap(self.address, self.reach);
    }
}

/// Refuses a size that is too large a share of the free memory.
fn enough(size: Bytes) -> io::Result<()> {
    match free_memory() {
        Some(free) if size.0 as f64 > free.0 as f64 * MOST_OF_FREE => {
            Err(io::Error::other(format!("only {free} of memory is free, and a buffer may take three quarters of it")))
        }
        _ => Ok(()),
    }
}

/// Reserves addresses that begin at a multiple of the page size.
fn aligned(length: usize, pages: Pages) -> io::Result<NonNull<u8>> {
    let alignment = usize::try_from(pages.size().0).unwrap_or(usize::MAX);
    let more = length.checked_add(alignment).ok_or(Errno::NOMEM)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: reserves addresses of the kernel's choice without access to them; nothing that exists is touched.
    let address = unsafe { mmap_anonymous(std::ptr::null_mut(), more, ProtFlags::empty(), flags)? };
    let start = address as usize;
    let first = start.next_multiple_of(alignment);
    let address = NonNull::new(first as *mut u8).ok_or(Errno::NOMEM)?;
    let (before, after) = (first - start, start + more - (first + length));
    if let (Some(start), true) = (NonNull::new(start as *mut u8), before > 0) {
        unmap(start, before);
    }
    if after > 0 {
        // SAFETY: `first + length` is within the reservation, whose end lies `after` bytes behind it.
        unmap(unsafe { address.add(length) }, after);
    }
    Ok(address)
}

/// Maps a file or anonymous memory over a part of a reservation, which is gone on failure, or at any address.
fn reserve(
    at: Option<NonNull<u8>>,
    length: usize,
    flags: MapFlags,
    file: Option<BorrowedFd<'_>>,
    pages: Pages,
) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let wanted = at.map_or(std::ptr::null_mut(), |at| at.as_ptr().cast());
    let flags = if at.is_some() { flags | MapFlags::FIXED } else { flags };
    // SAFETY: replaces a part of the reservation that `aligned` made for this and nothing else, or nothing that exists.
    // If the call fails, the kernel may have released the reservation; only addresses are lost then. Unmapping them
    // could hit a mapping that another thread has made there meanwhile.
    let mapped = unsafe {
        match file {
            Some(file) => mmap(wanted, length, access, flags, file, 0)?,
            None => mmap_anonymous(wanted, length, access, flags)?,
        }
    };
    let address = NonNull::new(mapped.cast()).ok_or(Errno::NOMEM)?;
    if pages == Pages::Transparent {
        // SAFETY: advice about the mapping that was made above. A refusal shows when the pages are read back.
        let _ = unsafe { madvise(mapped, length, Advice::LinuxHugepage) };
    }
    Ok(address)
}

/// Maps like [`reserve`], and makes the pages present. If that fails, the mapping is gone, too.
fn place(
    at: Option<NonNull<u8>>,
    length: usize,
    flags: MapFlags,
    file: Option<BorrowedFd<'_>>,
    pages: Pages,
) -> io::Result<NonNull<u8>> {
    let address = reserve(at, length, flags, file, pages)?;
    if pages == Pages::Transparent {
        collapse(address, length);
    }
    // SAFETY: faults the pages of the mapping above in, as a write would, but fails where there are none (hugetlb).
    match unsafe { madvise(address.as_ptr().cast(), length, Advice::LinuxPopulateWrite) } {
        // A kernel before 5.14 does not know the advice; it allocates the pages at the first access.
        Ok(()) | Err(Errno::INVAL) => Ok(address),
        Err(error) => {
            unmap(address, length);
            Err(error.into())
        }
    }
}

/// Linux's `asm-generic/mman-common.h`. The crate libc has it for glibc alone, rustix not at all.
const MADV_COLLAPSE: libc::c_int = 25;

/// Puts a mapping on huge pages, as far as the kernel can (Linux 6.1). Memory in a file gets none by faults alone where
/// `shmem_enabled` is `never`, as it is by default. A refusal shows when the pages are read back.
fn collapse(address: NonNull<u8>, length: usize) {
    // One present page per range is enough: the kernel clears the rest itself, faster than a fault for each page.
    for at in (0..length).step_by(Pages::Transparent.size().0 as usize) {
        // SAFETY: brings in one page of the mapping, as writing to it would; `at` is within it.
        let _ = unsafe { madvise(address.as_ptr().add(at).cast(), page_size(), Advice::LinuxPopulateWrite) };
    }
    // SAFETY: changes the size of the pages behind the mapping; the bytes and the addresses stay as they are.
    let _ = unsafe { libc::madvise(address.as_ptr().cast(), length, MADV_COLLAPSE) };
}

fn unmap(address: NonNull<u8>, length: usize) {
    // SAFETY: called once for each range, by its only owner, when no pointer into it is left.
    let _ = unsafe { munmap(address.as_ptr().cast(), length) };
}

/// Memory that the system can allocate without swapping.
pub fn free_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok().map(Bytes::kib)
}

/// The pages of the mapping at an address, from the text of `/proc/self/smaps`, and its bytes on transparent huge
/// pages. A mapping counts as transparent huge pages only if all of it is on them.
fn pages_at(smaps: &str, address: usize) -> Option<(Pages, Bytes)> {
    let is_head =
        |line: &&str| line.as_bytes().first().is_some_and(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(c));
    let holds = |line: &str| {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        let [begin, end] = [begin, end].map(|hex| usize::from_str_radix(hex, 16).unwrap_or(0));
        Some((begin..end).contains(&address))
    };
    let mut lines = smaps.lines();
    lines.find(|line| is_head(line) && holds(line) == Some(true))?;
    let mapping: Vec<&str> = lines.take_while(|line| !is_head(line)).collect();
    let kib = |name: &str| {
        let line = mapping.iter().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let huge = kib("AnonHugePages:").unwrap_or(0) + kib("ShmemPmdMapped:").unwrap_or(0);
    let pages = match kib("KernelPageSize:")? {
        1_048_576.. => Pages::Huge1G,
        2048.. => Pages::Huge2M,
        _ if huge > 0 && huge >= kib("Size:")? => Pages::Transparent,
        _ => Pages::Small,
    };
    Some((pages, Bytes::kib(huge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_a_mirrored_memory_are_the_same_bytes() {
        let memory = Memory::mirrored(Bytes::kib(64), Bytes::kib(64), Pages::Small).expect("64 KiB");
        let size = memory.size().0 as usize;
        assert_eq!(memory.reach(), 2 * size);
        let first = memory.address().as_ptr();
        // SAFETY: all addresses are within the reach of the memory, which only this test uses.
        unsafe {
            first.add(size - 1).write(7);
            first.add(size).write(8);
            assert_eq!((first.read(), first.add(2 * size - 1).read()), (8, 7));
        }
        let mut seen = [0; 2];
        memory.view().expect("a view").copy(size as u64 - 1, &mut seen);
        assert_eq!(seen, [7, 8]);
    }

    #[test]
    fn a_view_copies_any_piece_at_any_place() {
        let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
        let size = memory.size().0 as usize;
        let value = |at: usize| (at % size * 7 % 251) as u8;
        // SAFETY: all addresses are within the reach of the memory, which only this test uses.
        (0..size).for_each(|at| unsafe { memory.address().as_ptr().add(at).write(value(at)) });
        let view = memory.view().expect("a view");
        for (at, length) in (0..19).flat_map(|at| (0..40).map(move |length| (at, length))) {
            for at in [at, size - 20 + at, 5 * size + at] {
                let mut seen = vec![0; length];
                view.copy(at as u64, &mut seen);
                assert!(seen.iter().enumerate().all(|(number, byte)| *byte == value(at + number)), "{length} at {at}");
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_halved_and_every_refusal_is_kept() {
        // No test machine reserves a thousand pages of 1 GiB; the larger kinds are refused at once.
        let memory = Memory::mirrored(Bytes::mib(8), Bytes::mib(8), Pages::Huge1G).expect("8 MiB");
        let granted = memory.granted();
        if granted.pages == Pages::Small {
            assert!(granted.refused.len() > 1, "{granted:?}");
        }
        let most = Bytes(1 << 46);
        let refused = Memory::plain(most, Bytes(1 << 42), Pages::Small).expect_err("more than any machine has");
        assert_eq!(refused.refused.len(), 5, "{refused}");
    }

    #[test]
    fn the_pages_are_those_the_kernel_shows() {
        let memory = Memory::plain(Bytes::mib(4), Bytes::mib(4), Pages::Small).expect("4 MiB");
        assert_eq!(memory.granted().pages, Pages::Small);
        assert_eq!(memory.granted().refused, Vec::<String>::new());
        let memory = Memory::plain(Bytes::mib(4), Bytes::mib(4), Pages::Transparent).expect("4 MiB");
        let granted = memory.granted();
        assert_eq!(granted.pages != Pages::Transparent, !granted.refused.is_empty(), "{granted:?}");
    }

    /// Without the collapse, memory in a file gets small pages where `shmem_enabled` is `never`.
    #[test]
    fn memory_that_is_mapped_twice_has_huge_pages_where_plain_memory_has() {
        let size = Bytes::mib(4);
        let plain = Memory::plain(size, size, Pages::Transparent).expect("4 MiB");
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
        // SAFETY: changes the page size of a mapping that only this test uses; kernels before 6.1 refuse it.
        let known = unsafe { libc::madvise(plain.address().as_ptr().cast(), plain.reach(), MADV_COLLAPSE) } == 0;
        if known && !setting.contains("[deny]") {
            let mirrored = Memory::mirrored(size, size, Pages::Transparent).expect("4 MiB");
            assert_eq!(mirrored.granted().pages, Pages::Transparent, "{:?}", mirrored.granted());
        }
    }

    /// Texts as the kernel writes them. One huge page among many small ones once counted as transparent huge pages.
    #[test]
    fn a_memory_is_on_huge_pages_only_if_all_of_it_is() {
        let text = |page: u64, anonymous: u64, shared: u64| {
            format!(
                "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize:               4096 kB\nKernelPageSize:     {page:4} kB\n\
                 MMUPageSize:           4 kB\nAnonHugePages:  {anonymous} kB\nShmemPmdMapped: {shared} kB\n\
                 VmFlags: rd wr\n7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [stack]\nSize: 4096 kB\n\
                 KernelPageSize: 4 kB\nAnonHugePages: 4096 kB\n"
            )
        };
        for (page, anonymous, shared, expected) in [
            (4, 0, 0, Pages::Small),
            (4, 2048, 0, Pages::Small),
            (4, 4096, 0, Pages::Transparent),
            (4, 0, 2048, Pages::Small),
            (4, 0, 4096, Pages::Transparent),
            (2048, 0, 0, Pages::Huge2M),
            (1_048_576, 0, 0, Pages::Huge1G),
        ] {
            let found = pages_at(&text(page, anonymous, shared), 0x7f00_003f_f000);
            assert_eq!(found, Some((expected, Bytes::kib(anonymous + shared))), "{page} {anonymous} {shared}");
        }
        assert_eq!(pages_at(&text(4, 0, 0), 0x7f00_0080_0000), None);
    }

    /// Memory whose pages could not be allocated was never released.
    #[test]
    fn what_is_refused_leaves_no_addresses_behind() {
        let reserved = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("a status");
            let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
            Bytes::kib(line.trim().trim_end_matches(" kB").parse().expect("a number"))
        };
        let before = reserved();
        // There are no pages behind the end of a file. No machine has set aside 1 TiB.
        let empty = tempfile::tempfile().expect("a file");
        let most = 1 << 40;
        for _ in 0..16 {
            assert!(place(None, most, MapFlags::SHARED, Some(empty.as_fd()), Pages::Small).is_err());
            let size = Bytes(most as u64);
            assert!(
                Memory::map(size, Pages::Huge2M, false).is_err() && Memory::map(size, Pages::Huge2M, true).is_err()
            );
        }
        let after = reserved();
        assert!(after.0 < before.0 + most as u64, "{before} before, {after} after");
    }
}
