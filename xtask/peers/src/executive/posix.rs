//! Semaphores, message queues and futexes of POSIX and Linux.
//!
//! Thin wrappers with only the calls that the adapters need. An impossible failure of a call is a bug of this file and
//! panics.
#![expect(unsafe_code, reason = "calls of libc on objects that it wants at a fixed address")]

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

use hairspring_suite::executive::port::Message;

/// Number of the next queue's name.
static NEXT_QUEUE: AtomicU32 = AtomicU32::new(0);

/// A `sem_t` of this process.
pub(crate) struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: a `sem_t` is made to be used by several threads at once, through its address, which the box keeps.
unsafe impl Sync for Semaphore {}
// SAFETY: as above; nothing about it belongs to the thread that made it.
unsafe impl Send for Semaphore {}

impl Semaphore {
    pub(crate) fn new(count: u32) -> Self {
        let memory = MaybeUninit::<libc::sem_t>::zeroed();
        // SAFETY: a `sem_t` is plain memory, of which all zeros is a value; `sem_init` makes it a semaphore.
        let semaphore = Self(Box::new(UnsafeCell::new(unsafe { memory.assume_init() })));
        // SAFETY: the semaphore stays in the box, and no other thread has a reference to it yet.
        let result = unsafe { libc::sem_init(semaphore.0.get(), 0, count) };
        assert_eq!(result, 0, "counts here are small");
        semaphore
    }

    #[inline]
    pub(crate) fn post(&self) {
        // SAFETY: the semaphore was initialised in `new` and lives as long as `self`.
        unsafe { libc::sem_post(self.0.get()) };
    }

    #[inline]
    pub(crate) fn wait(&self) {
        // SAFETY: as in `post`. A signal interrupts the wait; then it is begun again.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: `self` is the last reference, so no thread waits.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// A message queue of the kernel, without a name by the time it is used.
pub(crate) struct Queue(libc::mqd_t);

impl Queue {
    /// A queue with room for `room` messages.
    pub(crate) fn new(room: i64) -> std::io::Result<Self> {
        // Relaxed: only that no two are the same.
        let number = NEXT_QUEUE.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("/hairspring-peers-{}-{number}", std::process::id()))?;
        let mut attributes = MaybeUninit::<libc::mq_attr>::zeroed();
        // SAFETY: `mq_attr` is plain integers, of which all zeros is a value.
        let attributes = unsafe { attributes.assume_init_mut() };
        attributes.mq_maxmsg = room;
        attributes.mq_msgsize = size_of::<Message>() as i64;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        // SAFETY: name and attributes live through the call; with O_CREAT it takes a mode and attributes.
        let queue = unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, std::ptr::from_mut(attributes)) };
        if queue < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the name lives through the call. The queue stays until it is closed.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        Ok(Self(queue))
    }

    /// Sends; waits for room.
    #[inline]
    pub(crate) fn send(&self, message: Message) {
        // SAFETY: the message is that many readable bytes; the descriptor is open as long as `self`.
        unsafe { libc::mq_send(self.0, (&raw const message).cast(), size_of::<Message>(), 0) };
    }

    #[inline]
    pub(crate) fn receive(&self) -> Message {
        let mut message = Message::default();
        let size = size_of::<Message>();
        // SAFETY: the message is that many writable bytes, the queue's message size; a signal begins the wait again.
        while unsafe { libc::mq_receive(self.0, (&raw mut message).cast(), size, std::ptr::null_mut()) } < 0 {}
        message
    }

    /// Wakes a thread that waits for a message.
    pub(crate) fn release(&self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let message = Message::default();
        // SAFETY: as in `send`; a deadline in the past does not wait. If the queue is full no thread waits for it.
        unsafe { libc::mq_timedsend(self.0, (&raw const message).cast(), size_of::<Message>(), 0, &raw const at_once) };
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is not used again.
        unsafe { libc::mq_close(self.0) };
    }
}

/// Waits at a futex while it has this value.
#[inline]
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives through the call, which only reads it; the kernel compares and sleeps.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}

/// Wakes one thread that waits at a futex.
#[inline]
pub(crate) fn futex_wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the address is only used as a name.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}
