//! Handles: the pointers that a C caller holds. A word at the beginning of each identifies its kind.
//!
//! ```text
//!   ┌───────────────┬─────────────────────┬────────┬──────────────────────┐
//!   │ word: kind    │ users: 0, n, alone  │ flag   │ what the handle owns │
//!   └───────────────┴─────────────────────┴────────┴──────────────────────┘
//!     FREED after       a call that changes something is alone;
//!     its end           one that comes then is refused, not kept waiting
//! ```
//!
//! **Freed handles.** The memory of a freed handle stays allocated until [`REMEMBERED`] more have been freed. So its
//! word can still be read and is `FREED`, and use after free is detected. Use of a handle that was freed earlier is not
//! detected; that is the caller's mistake, as with `free`.
//!
//! **Why no lock.** A call that finds a handle in use returns an error at once, because waiting would add the time of
//! one delay to another. And in the child of a fork the thread that holds a lock may not exist.

#![expect(unsafe_code, reason = "handles are addresses that C holds")]

mod users;

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Failure, HS_E_BUSY, HS_E_FREED, HS_E_HANDLE};
use users::Users;

/// The number of freed handles that stay allocated; 1,024 take less than a megabyte.
const REMEMBERED: usize = 1_024;
/// Attempts to lock the list of them, about 10 us in all. No thread holds the lock for longer than some 100 ns.
const TRIES: usize = 1_000;
/// The word of a handle that has been freed.
const FREED: u64 = 0x6672_6565_645f_6873;

/// A kind of handle. The type that implements it is opaque to C.
pub(crate) trait Kind: 'static {
    /// The value in a handle. Any thread of C may use and free it.
    type Owned: Send;
    /// The word of the kind: eight letters.
    const WORD: u64;
    /// Its name in a sentence.
    const NAME: &'static str;
    /// Whether its contents are dropped when the handle is freed, or with its memory.
    const GOES_AT_ONCE: bool = true;
}

/// The layout of a handle in memory.
#[repr(C)]
pub(crate) struct Handle<K: Kind> {
    word: AtomicU64,
    users: Users,
    /// A word from another thread to the exclusive call.
    pub(crate) flag: AtomicBool,
    owned: UnsafeCell<ManuallyDrop<K::Owned>>,
}

/// Makes a handle for C.
pub(crate) fn make<K: Kind>(owned: K::Owned) -> *mut K {
    let handle = Handle::<K> {
        word: AtomicU64::new(K::WORD),
        users: Users::new(),
        flag: AtomicBool::new(false),
        owned: UnsafeCell::new(ManuallyDrop::new(owned)),
    };
    Box::into_raw(Box::new(handle)).cast()
}

/// Finds the handle at a pointer from C, if it is of this kind and alive.
#[inline(always)]
pub(crate) fn find<'a, K: Kind>(pointer: *const K) -> Result<&'a Handle<K>, Failure> {
    look(pointer).map_err(|code| stranger::<K>(pointer, code))
}

/// The same with a bare code for an error. It neither allocates nor formats, so a signal handler may call it.
#[inline(always)]
pub(crate) fn look<'a, K: Kind>(pointer: *const K) -> Result<&'a Handle<K>, c_int> {
    let handle = pointer.cast::<Handle<K>>();
    if handle.is_null() || !handle.is_aligned() {
        return Err(HS_E_HANDLE);
    }
    // SAFETY: not NULL and aligned; the header asks the caller for a handle of this library, and every kind begins with
    // this word, which is atomic and outlives the handle. A pointer to anything else is a caller's mistake, reported if
    // it can be read.
    let word = unsafe { &*handle.cast::<AtomicU64>() };
    // Acquire pairs with the Release in `free`: a thread that reads the live word also sees the initialised handle.
    match word.load(Ordering::Acquire) {
        // SAFETY: the word proves that `make` made it of this kind, and its memory is kept beyond its end.
        alive if alive == K::WORD => Ok(unsafe { &*handle }),
        FREED => Err(HS_E_FREED),
        _ => Err(HS_E_HANDLE),
    }
}

#[cold]
fn stranger<K: Kind>(pointer: *const K, code: c_int) -> Failure {
    let why = match code {
        HS_E_FREED => "the handle has been freed",
        _ if pointer.is_null() => "NULL was given in its place",
        _ => "the handle is of another kind, or none",
    };
    Failure::new(code, format!("use a {}: {why}", K::NAME))
}

fn busy<K: Kind>() -> Failure {
    Failure::new(HS_E_BUSY, format!("use a {}: another thread is using it; give each thread its own", K::NAME))
}

/// The contents of a handle for a call that changes nothing and is not counted; for kinds whose contents live as long
/// as their memory.
#[inline(always)]
pub(crate) fn peek<'a, K: Kind>(pointer: *const K) -> Result<&'a K::Owned, Failure>
where
    K::Owned: Sync,
{
    const { assert!(!K::GOES_AT_ONCE) };
    let handle = find(pointer)?;
    // SAFETY: what this kind owns is never changed and goes with the memory of the handle only, so there is nothing but
    // readers.
    Ok(unsafe { &*handle.owned.get() })
}

/// Shared access to a handle during a call that changes nothing in it.
pub(crate) struct Shared<'a, K: Kind>(&'a Handle<K>);

impl<'a, K: Kind> Shared<'a, K>
where
    K::Owned: Sync,
{
    #[inline(always)]
    pub(crate) fn of(pointer: *const K) -> Result<Self, Failure> {
        let handle = find(pointer)?;
        // Between freeing and marking it freed there is a moment; it counts as busy.
        if handle.users.share() { Ok(Self(handle)) } else { Err(busy::<K>()) }
    }
}

impl<K: Kind> Deref for Shared<'_, K> {
    type Target = K::Owned;
    #[inline(always)]
    fn deref(&self) -> &K::Owned {
        // SAFETY: as long as this one is counted, no caller is alone with the handle, so none changes or frees what it
        // owns.
        unsafe { &*self.0.owned.get() }
    }
}

impl<K: Kind> Drop for Shared<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.users.end_share();
    }
}

/// Exclusive access to a handle during a call that changes something in it.
pub(crate) struct Alone<'a, K: Kind>(&'a Handle<K>);

impl<'a, K: Kind> Alone<'a, K> {
    #[inline(always)]
    pub(crate) fn of(pointer: *const K) -> Result<Self, Failure> {
        let handle = find(pointer)?;
        if handle.users.be_alone() { Ok(Self(handle)) } else { Err(busy::<K>()) }
    }

    pub(crate) fn handle(&self) -> &'a Handle<K> {
        self.0
    }
}

impl<K: Kind> Deref for Alone<'_, K> {
    type Target = K::Owned;
    #[inline(always)]
    fn deref(&self) -> &K::Owned {
        // SAFETY: `users` lets one call at a time be alone, and it is this one; the borrow ends with it.
        unsafe { &*self.0.owned.get() }
    }
}

impl<K: Kind> DerefMut for Alone<'_, K> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut K::Owned {
        // SAFETY: alone, as in `deref`; and borrowed mutably, so there is no second borrow through this one.
        unsafe { &mut *self.0.owned.get() }
    }
}

impl<K: Kind> Drop for Alone<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // After a panic the handle stays locked for ever.
            self.0.users.end_alone();
        }
    }
}

/// Frees a handle. NULL is allowed, as with `free`.
pub(crate) fn free<K: Kind>(pointer: *mut K) -> Result<(), Failure> {
    if pointer.is_null() {
        return Ok(());
    }
    let handle = find(pointer)?;
    if !handle.users.go() {
        return Err(busy::<K>());
    }
    // Release pairs with the Acquire in `find`.
    handle.word.store(FREED, Ordering::Release);
    if K::GOES_AT_ONCE {
        // SAFETY: `users` lets one call free it, and no other in after that: no other caller has it, nor will have it.
        unsafe { ManuallyDrop::drop(&mut *handle.owned.get()) };
    }
    bury(Grave { memory: pointer.cast(), fill: give_back::<K> });
    Ok(())
}

/// A freed handle whose memory stays allocated.
struct Grave {
    memory: *mut (),
    fill: unsafe fn(*mut ()),
}

// SAFETY: the memory of a handle that `free` has made unreachable but for its word, which is atomic.
unsafe impl Send for Grave {}

static GRAVES: Mutex<VecDeque<Grave>> = Mutex::new(VecDeque::new());

fn bury(grave: Grave) {
    // In the child of a fork the lock may be held by a thread that is not there, and at any time by one that is waiting
    // for its CPU. After some failed attempts the memory is leaked.
    let tries = std::iter::repeat_with(|| {
        std::hint::spin_loop();
        GRAVES.try_lock().ok()
    });
    let Some(mut graves) = tries.take(TRIES).flatten().next() else { return };
    graves.push_back(grave);
    let oldest = if graves.len() > REMEMBERED { graves.pop_front() } else { None };
    drop(graves);
    if let Some(Grave { memory, fill }) = oldest {
        // SAFETY: `free` put it there with the function for its kind, once, and it has been taken off the list.
        unsafe { fill(memory) };
    }
}

/// # Safety
/// `memory` is a handle of this kind that has been freed, and this is done once.
unsafe fn give_back<K: Kind>(memory: *mut ()) {
    // SAFETY: `make` made it as a box of this type.
    let mut handle = unsafe { Box::from_raw(memory.cast::<Handle<K>>()) };
    if !K::GOES_AT_ONCE {
        // SAFETY: it has not gone with `free`, and nothing reads it after this.
        unsafe { ManuallyDrop::drop(handle.owned.get_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct One;
    impl Kind for One {
        type Owned = Arc<u32>;
        const WORD: u64 = 1;
        const NAME: &'static str = "one";
    }

    struct Other;
    impl Kind for Other {
        type Owned = Arc<u32>;
        const WORD: u64 = 2;
        const NAME: &'static str = "other";
        const GOES_AT_ONCE: bool = false;
    }

    fn code<T>(result: Result<T, Failure>) -> i32 {
        result.map_or_else(Failure::tell, |_| 0)
    }

    #[test]
    fn what_is_no_handle_of_the_kind_is_told() {
        let one = make::<One>(Arc::new(7));
        assert_eq!(**Shared::of(one).unwrap(), 7);
        assert_eq!(code(Shared::of(one.cast::<Other>())), HS_E_HANDLE);
        assert_eq!(code(Shared::<One>::of(std::ptr::null())), HS_E_HANDLE);
        assert_eq!(code(Shared::of(one.cast::<u8>().wrapping_add(1).cast::<One>())), HS_E_HANDLE);
        let words = [0_u64; 8];
        assert_eq!(code(Shared::of(words.as_ptr().cast::<One>())), HS_E_HANDLE);
        assert_eq!(code(free(one)), 0);
        assert_eq!(code(Shared::of(one)), HS_E_FREED);
        assert_eq!(code(free(one)), HS_E_FREED);
        assert_eq!(code(free::<One>(std::ptr::null_mut())), 0);
    }

    #[test]
    fn a_handle_in_use_is_busy_and_free_afterwards() {
        let one = make::<One>(Arc::new(7));
        let alone = Alone::of(one).unwrap();
        assert_eq!(code(Alone::of(one)), HS_E_BUSY);
        assert_eq!(code(Shared::of(one)), HS_E_BUSY);
        assert_eq!(code(free(one)), HS_E_BUSY);
        drop(alone);
        let (first, second) = (Shared::of(one).unwrap(), Shared::of(one).unwrap());
        assert_eq!(code(Alone::of(one)), HS_E_BUSY);
        assert_eq!(code(free(one)), HS_E_BUSY);
        drop((first, second));
        *Arc::make_mut(&mut Alone::of(one).unwrap()) += 1;
        assert_eq!(**Shared::of(one).unwrap(), 8);
        assert_eq!(code(free(one)), 0);
    }

    #[test]
    fn a_handle_that_panicked_stays_busy() {
        let one = make::<One>(Arc::new(7));
        let panicked = std::panic::catch_unwind(|| {
            let _alone = Alone::of(one).unwrap();
            panic!("as if there were a bug");
        });
        assert!(panicked.is_err());
        assert_eq!(code(Alone::of(one)), HS_E_BUSY);
    }

    #[test]
    fn what_a_handle_owns_goes_with_it_or_with_its_memory() {
        let (at_once, later) = (Arc::new(1), Arc::new(2));
        let (one, other) = (make::<One>(at_once.clone()), make::<Other>(later.clone()));
        let seen = peek(other).unwrap();
        assert_eq!(code(free(one)), 0);
        assert_eq!(code(free(other)), 0);
        assert_eq!(Arc::strong_count(&at_once), 1);
        // A caller that had it before can still read it.
        assert_eq!((**seen, Arc::strong_count(&later)), (2, 2));
        // Other tests may hold the list, so it takes a few more than the limit.
        for _ in 0..4 * REMEMBERED {
            assert_eq!(code(free(make::<One>(at_once.clone()))), 0);
        }
        assert_eq!(Arc::strong_count(&later), 1);
    }
}
