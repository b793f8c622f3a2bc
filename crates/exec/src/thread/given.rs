//! [`TaskThread`]: the thread of a task, of the standard library or on memory of the program.
#![expect(unsafe_code, reason = "a thread on memory of the program, which the standard library cannot make")]

use std::ffi::{CString, c_void};
use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::engine::TaskStack;
use crate::system::given_stack::StackMemory;

/// The code of a thread. Catches its panics itself.
type Code = Box<dyn FnOnce() + Send>;

/// A thread that is to be joined.
pub(super) enum TaskThread {
    Standard(JoinHandle<()>),
    OnMemory(ThreadOnMemory),
}

/// A thread on memory of the program.
pub(super) struct ThreadOnMemory {
    thread: libc::pthread_t,
    over: Arc<AtomicBool>,
    /// Given back when the thread has been joined.
    memory: StackMemory,
}

// SAFETY: any thread may join another. In some C libraries (musl) the number of a thread is a pointer, which only they
// follow.
unsafe impl Send for ThreadOnMemory {}

impl TaskThread {
    /// Starts a thread with this name. `overhead_bytes` are added to a size, and must be in memory of the program.
    pub(super) fn start(
        name: String,
        stack: TaskStack,
        usual_bytes: usize,
        overhead_bytes: usize,
        code: Code,
    ) -> Result<Self, Error> {
        let bytes = match stack {
            TaskStack::Usual => usual_bytes,
            TaskStack::Bytes(bytes) => bytes,
            TaskStack::Memory(memory) => return ThreadOnMemory::start(&name, memory, code).map(Self::OnMemory),
        };
        let builder = std::thread::Builder::new().name(name).stack_size(bytes.saturating_add(overhead_bytes));
        builder.spawn(code).map(Self::Standard)
    }

    /// Whether joining it waits only for its last instructions.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Standard(thread) => thread.is_finished(),
            // Acquire pairs with the Release in `begin`.
            Self::OnMemory(thread) => thread.over.load(Ordering::Acquire),
        }
    }

    /// Whether its stack is to be free when its task is gone.
    pub(super) fn is_on_memory(&self) -> bool {
        matches!(self, Self::OnMemory(_))
    }

    /// Waits for its end. A thread of a task does not panic: its body's panics are caught.
    pub(super) fn join(self) {
        match self {
            Self::Standard(thread) => {
                let _ = thread.join();
            }
            Self::OnMemory(ThreadOnMemory { thread, memory, .. }) => {
                // SAFETY: made joinable, and joined once: this takes it.
                let joined = unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
                if joined != 0 {
                    // It still runs on the memory, as far as is known.
                    std::mem::forget(memory);
                }
            }
        }
    }

    /// Leaves a thread behind that does not end; its memory stays its own.
    pub(super) fn abandon(self) {
        if let Self::OnMemory(thread) = self {
            std::mem::forget(thread.memory);
        }
    }
}

/// Arguments of a new thread.
struct Start {
    name: CString,
    code: Code,
    over: Arc<AtomicBool>,
}

impl ThreadOnMemory {
    fn start(name: &str, memory: StackMemory, code: Code) -> Result<Self, Error> {
        let over = Arc::new(AtomicBool::new(false));
        let name = CString::new(name.replace('\0', "")).unwrap_or_default();
        let start = Box::into_raw(Box::new(Start { name, code, over: Arc::clone(&over) }));
        let extent = memory.extent();
        // SAFETY: the attributes live during the calls and are initialized before they are used; the stack is the
        // program's, which handed it over until the thread is joined; `begin` takes `start`, which is taken back here
        // if there is no thread.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            let mut thread: libc::pthread_t = std::mem::zeroed();
            let mut code = libc::pthread_attr_init(&raw mut attributes);
            if code == 0 {
                code = libc::pthread_attr_setstack(&raw mut attributes, extent.low as *mut c_void, extent.bytes);
                if code == 0 {
                    code = libc::pthread_create(&raw mut thread, &raw const attributes, begin, start.cast());
                }
                libc::pthread_attr_destroy(&raw mut attributes);
            }
            if code != 0 {
                drop(Box::from_raw(start));
                return Err(Error::from_raw_os_error(code));
            }
            Ok(Self { thread, over, memory })
        }
    }
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `ThreadOnMemory::start` made it and left it to this thread.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    let Start { name, code, over } = *start;
    // SAFETY: the calling thread and a string that lives. A name that is too long is refused, and the thread has its
    // maker's.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
    code();
    // Release pairs with the Acquire in `is_over`.
    over.store(true, Ordering::Release);
    std::ptr::null_mut()
}
