//! [`Context`]: the caller (program, task or procedure), and its executive.
//!
//! Problem: a function in C has no argument for its caller, and fibers share one thread.
//!
//! Solution: one word of the thread points to the context of the code that runs. It is set before a function of the
//! program is called, put back after a timer or interrupt procedure, and set again whenever a call returns to its task.
//! Why it works: a fiber gives the CPU away inside of calls only, and comes back out of the same call.
//!
//! Conditions: the code has not left its stack by a jump, and is not in the child of a fork. Both are tested, not
//! assumed: a context that is not on the caller's stack is none, a fork takes the word away in the child, and a
//! function that returns without the word ends the process.

#![expect(unsafe_code, reason = "the context of the running code, found by a pointer of its thread")]

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::io::Write as _;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::{
    AtOnce, CallSite, CallStatus, Caller, Create, IspCtx, LEAST_STACK_BYTES, Limit, Mailbox, Nanos, TaskCtx, TimerCtx,
};

use super::executive::{hs_exec, hs_exec_message};
use super::ids::{self, IdKind};
use super::outcome::{failure, foreign, meaning, not_here};
use super::result::Results;
use super::threshold::SchedulerLock;
use crate::error::{Failure, HS_E_BUSY, HS_E_CALLER, HS_E_REFUSED, HS_OK, say};
use crate::handle::Alone;
use crate::host::{Uncancelled, in_each_child, set_word, stack_pointer, word};

/// Refused calls of one killed run after which the process is ended: a task in an endless loop would never let the run
/// end.
const MOST_REFUSED: u32 = 100_000;

/// Code of the program may begin a little above the place at which its context was made: the frames between them.
const FRAMES_BYTES: usize = 4_096;

/// The code that runs.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Task(*const TaskCtx<'static>),
    Timer(*const TimerCtx<'static>),
    Interrupt(*const IspCtx<'static>),
}

/// The library's record of the code that runs.
pub(super) struct Context {
    pub(super) who: Who,
    pub(super) caller: Caller<'static>,
    /// The shortest ways of its calls, if it is a task on fibers.
    at_once: Option<AtOnce<'static>>,
    /// The number of the executive.
    pub(super) home: u32,
    here: Home,
    /// Where its stack began, and how far down it may be.
    stack: usize,
    depth_bytes: usize,
    /// The number of the run among all of the process, once it is asked for.
    run: Cell<u64>,
    /// The mailboxes of the task.
    pub(super) mailbox: Option<Mailbox<hs_exec_message>>,
    /// Whether the run has locked the scheduler.
    pub(super) lock: SchedulerLock,
    /// Calls that were refused because the task has been killed.
    refused: Cell<u32>,
}

thread_local! {
    /// The executives that this thread made.
    static OWN: RefCell<Vec<(u32, *const hs_exec)>> = const { RefCell::new(Vec::new()) };
}

/// The context of the calling code; none outside of the executive's tasks and procedures, and after a jump out of them.
#[inline(always)]
pub(super) fn current<'c>() -> Option<&'c Context> {
    // SAFETY: null, or set by `within`, whose context lives as long as the code that it calls. A fiber's stack stays
    // while it is away, and after a jump out of it, because the run then never ends.
    let context = unsafe { word().cast::<Context>().as_ref() }?;
    // The stack grows down; above its beginning this is more than any depth.
    (context.stack.wrapping_sub(stack_pointer()) <= context.depth_bytes).then_some(context)
}

/// Takes the context away in the child of a fork: there is no executive in it.
extern "C" fn forget() {
    set_word(std::ptr::null());
}

/// Forks are noticed from now on.
pub(super) fn notice_forks() -> Result<(), Failure> {
    static NOTICED: OnceLock<bool> = OnceLock::new();
    if *NOTICED.get_or_init(|| in_each_child(forget)) {
        return Ok(());
    }
    Err(Failure::new(HS_E_REFUSED, "make an executive: no memory to notice forks"))
}

/// Lets code of the program run in this context.
pub(super) fn within(context: &Context, code: impl FnOnce()) {
    if context.here.has_threads {
        Uncancelled::for_good();
    }
    let outer = word();
    context.come_back();
    code();
    if word() != std::ptr::from_ref(context).cast() {
        give_up(
            "hairspring: a task or procedure returned in the child of a fork, or after a jump from another; a child ends by exec or _exit, and \
             longjmp stays in its function\n",
        );
    }
    // No context is current after a task: the next task returns from a call or begins, and either sets its own.
    set_word(if matches!(context.who, Who::Task(_)) { std::ptr::null() } else { outer });
}

/// Lets code run that is in no context, and comes back to the present one.
pub(super) fn outside<R>(code: impl FnOnce() -> R) -> R {
    let outer = word();
    set_word(std::ptr::null());
    let result = code();
    set_word(outer);
    result
}

impl Context {
    /// # Safety
    /// The executive and the context in `who` live as long as this one.
    #[inline(always)]
    pub(super) unsafe fn new(here: Home, who: Who, caller: Caller<'_>) -> Self {
        // SAFETY: the caller's promise.
        let caller = unsafe { std::mem::transmute::<Caller<'_>, Caller<'static>>(caller) };
        let depth_bytes = if matches!(who, Who::Task(_)) { here.depth_bytes } else { isize::MAX as usize };
        let (stack, home) = (stack_pointer() + FRAMES_BYTES, here.home);
        let (run, refused, lock) = (Cell::new(0), Cell::new(0), SchedulerLock::default());
        let at_once = match who {
            // SAFETY: the caller's promise.
            Who::Task(task) => unsafe { &*task }.at_once(),
            _ => None,
        };
        Self { who, caller, at_once, home, here, stack, depth_bytes, run, mailbox: None, lock, refused }
    }

    /// Whether it is one of this executive.
    pub(super) fn is_of(&self, exec: *const hs_exec) -> bool {
        std::ptr::eq(self.here.exec, exec)
    }

    /// The number of this run, which no other run of the process has.
    #[inline]
    pub(super) fn run(&self) -> u64 {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        if self.run.get() == 0 {
            // Relaxed: only uniqueness matters.
            self.run.set(RUNS.fetch_add(1, Ordering::Relaxed));
        }
        self.run.get()
    }

    /// Results of this executive's tasks.
    pub(super) fn results(&self) -> &Results {
        // SAFETY: they belong to the executive, which lives as long as this context.
        unsafe { &*self.here.results }
    }

    /// The place from which this code makes calls.
    #[inline(always)]
    pub(super) fn site(&self) -> Site<'_> {
        Site { caller: self.caller, results: self.here.results, code: PhantomData }
    }

    /// A call has returned to this code.
    #[inline(always)]
    pub(super) fn come_back(&self) {
        set_word(std::ptr::from_ref(self).cast());
    }

    /// The code of a call that has returned to this code.
    #[inline(always)]
    pub(super) fn conclude(&self, result: Result<(), CallStatus>) -> c_int {
        self.come_back();
        match result {
            Ok(()) => HS_OK,
            Err(status) => self.refuse(status),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, status: CallStatus) -> c_int {
        let (code, sentence) = meaning(status);
        if status == CallStatus::Killed {
            self.refused.set(self.refused.get() + 1);
            if self.refused.get() > MOST_REFUSED {
                // Nothing else ends it: its frames cannot be unwound, and the run waits for its end.
                give_up(
                    "hairspring: a killed task went on after HS_E_KILLED 100000 times; it must return from its function\n",
                );
            }
        }
        say(code, sentence)
    }
}

/// Ends the process by SIGABRT, with the reason on standard error. It does not panic: a panic would unwind on the
/// task's stack up to the C function, which it cannot leave.
#[cold]
fn give_up(text: &str) -> ! {
    // Nothing is left to do if standard error is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
    std::process::abort()
}

/// Makes a call that cannot wait, about the object with this id: `serve!(id, kind, |site, number| call)`. It is
/// compiled twice: into the function for tasks, which make most calls, and out of the way for all other callers.
macro_rules! serve {
    ($id:expr, $kind:expr, |$site:ident, $number:ident| $call:expr) => {
        $crate::exec::context::serve_task($id, $kind, |$site, $number| $call, &|$site: &_, $number| $call)
    };
}
pub(super) use serve;

/// Makes the call `in_task` if a task makes it, `elsewhere` for any other caller.
#[inline(always)]
pub(super) fn serve_task(
    id: u64,
    kind: IdKind,
    in_task: impl FnOnce(&TaskCtx<'static>, u32) -> Result<(), CallStatus>,
    elsewhere: &dyn Fn(&Site<'_>, u32) -> Result<(), CallStatus>,
) -> c_int {
    match current() {
        Some(context) if let Who::Task(task) = context.who => {
            let Some(number) = ids::number(id, kind, context.home) else { return foreign() };
            // SAFETY: the task context lives as long as the context that names it.
            context.conclude(in_task(unsafe { &*task }, number))
        }
        _ => serve_any(id, kind, elsewhere),
    }
}

/// Makes a call that cannot wait, about the object with this id, for any caller.
#[cold]
#[inline(never)]
pub(super) fn serve_any(id: u64, kind: IdKind, call: &dyn Fn(&Site<'_>, u32) -> Result<(), CallStatus>) -> c_int {
    let Some(context) = current() else {
        let Some(home) = ids::home(id, kind) else { return foreign() };
        let Some(number) = ids::number(id, kind, home) else { return foreign() };
        return serve_own(home, &|site| call(&site, number));
    };
    let Some(number) = ids::number(id, kind, context.home) else { return foreign() };
    context.conclude(call(&context.site(), number))
}

/// Makes a call that cannot wait from outside, in the executive of this number: that of the calling thread.
#[cold]
#[inline(never)]
pub(super) fn serve_own(home: u32, call: &dyn Fn(Site<'_>) -> Result<(), CallStatus>) -> c_int {
    let exec = OWN.with_borrow(|own| own.iter().find(|(known, _)| *known == home).map(|(_, exec)| *exec));
    // An id of another thread's executive looks like this, too.
    let Some(exec) = exec else { return not_here() };
    let Ok(owned) = Alone::of(exec) else { return say(HS_E_BUSY, c"failed to make a call: the executive runs") };
    if let Err(failure) = owned.is_own() {
        return failure.tell();
    }
    match call(owned.site()) {
        Ok(()) => HS_OK,
        Err(status) => failure(status).tell(),
    }
}

/// The shortest ways of the caller's calls and the core's number of an object, if the caller is a task on fibers and
/// the object is of its executive. The calls change nothing of the context. None: another function makes the call in
/// full, and reports an error.
#[inline(always)]
pub(super) fn at_once(id: u64, kind: IdKind) -> Option<(AtOnce<'static>, u32)> {
    let context = current()?;
    Some((context.at_once?, ids::number(id, kind, context.home)?))
}

/// Makes a call that only a task may make.
#[inline(always)]
pub(super) fn in_task(call: impl FnOnce(&TaskCtx<'static>, &Context) -> Result<(), CallStatus>) -> c_int {
    match current() {
        Some(context) => match context.who {
            // SAFETY: a context's task context lives as long as it does.
            Who::Task(task) => context.conclude(call(unsafe { &*task }, context)),
            _ => not_here(),
        },
        None => not_here(),
    }
}

/// Makes a call that only a task may make, about the object with this id.
#[inline(always)]
pub(super) fn in_task_with(
    id: u64,
    kind: IdKind,
    call: impl FnOnce(&TaskCtx<'static>, u32) -> Result<(), CallStatus>,
) -> c_int {
    let Some(context) = current() else { return not_here() };
    let Who::Task(task) = context.who else { return not_here() };
    let Some(number) = ids::number(id, kind, context.home) else { return foreign() };
    // SAFETY: the task context lives as long as the context that names it.
    context.conclude(call(unsafe { &*task }, number))
}

/// Creates something in an executive: from one of its tasks, or from its own thread while it does not run.
pub(super) fn create(
    exec: *const hs_exec,
    make: impl FnOnce(Site<'_>, Home) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match current() {
        Some(context) if context.is_of(exec) => {
            let made = match context.who {
                Who::Task(_) => make(context.site(), context.here),
                _ => Err(Failure::told(not_here())),
            };
            context.come_back();
            made
        }
        _ => {
            let owned = Alone::of(exec)?;
            owned.is_own()?;
            make(owned.site(), owned.place(exec))
        }
    }
}

/// Notes an executive of this thread.
pub(super) fn own(home: u32, exec: *const hs_exec) {
    OWN.with_borrow_mut(|own| own.push((home, exec)));
}

/// Forgets an executive of this thread.
pub(super) fn disown(exec: *const hs_exec) {
    OWN.with_borrow_mut(|own| own.retain(|(_, known)| !std::ptr::eq(*known, exec)));
}

/// A place from which calls are made.
#[derive(Clone, Copy)]
pub(super) struct Site<'k> {
    caller: Caller<'k>,
    results: *const Results,
    /// The executive lives as long as the place.
    code: PhantomData<&'k Results>,
}

impl<'k> Site<'k> {
    pub(super) fn new(caller: Caller<'k>, results: &'k Results) -> Self {
        Self { caller, results, code: PhantomData }
    }

    /// Results of this executive's tasks.
    pub(super) fn results(&self) -> &'k Results {
        // SAFETY: borrowed for as long as the place lives, or of a context's executive, which lives as long as the
        // context.
        unsafe { &*self.results }
    }
}

impl CallSite for Site<'_> {
    #[inline(always)]
    fn caller(&self) -> Caller<'_> {
        self.caller
    }
}

impl Create for Site<'_> {}

/// How long a call may wait, from C.
#[inline(always)]
pub(super) fn limit(limit_ns: i64) -> Option<Limit> {
    match limit_ns {
        i64::MAX => Some(Limit::Forever),
        0 => Some(Limit::NoWait),
        ns if ns < 0 => None,
        ns => Some(Limit::For(Nanos::new(ns))),
    }
}

/// The argument that C gave for its functions. By giving it, the program promises that any thread may use it.
#[derive(Clone, Copy)]
pub(super) struct Argument(*mut std::ffi::c_void);

// SAFETY: the library never looks at what it points to; it hands it to the program's own function.
unsafe impl Send for Argument {}

impl Argument {
    pub(super) fn new(pointer: *mut std::ffi::c_void) -> Self {
        Self(pointer)
    }

    pub(super) fn pointer(self) -> *mut std::ffi::c_void {
        self.0
    }
}

/// The addresses of an executive's handle and of its tasks' results, carried into its tasks, which end before either is
/// freed.
#[derive(Clone, Copy)]
pub(super) struct Home {
    exec: *const hs_exec,
    results: *const Results,
    pub(super) home: u32,
    /// Whether tasks and procedures run on threads of the executive.
    has_threads: bool,
    /// How far down the stack a task of the program can be.
    depth_bytes: usize,
}

// SAFETY: the handle is compared and never followed by a task; results are words that any thread may read and write,
// and live as long as the executive.
unsafe impl Send for Home {}

impl Home {
    /// `stack_bytes`: of a fiber; none for threads.
    pub(super) fn new(exec: *const hs_exec, results: &Results, home: u32, stack_bytes: Option<usize>) -> Self {
        let has_threads = stack_bytes.is_none();
        let here = Self { exec, results, home, has_threads, depth_bytes: isize::MAX as usize };
        here.with_stack(stack_bytes)
    }

    /// The same for a task with a stack of this size; none: that of the executive.
    pub(super) fn with_stack(self, stack_bytes: Option<usize>) -> Self {
        match stack_bytes {
            Some(bytes) if !self.has_threads => {
                let bytes = bytes.max(LEAST_STACK_BYTES);
                Self { depth_bytes: bytes.saturating_add(2 * FRAMES_BYTES), ..self }
            }
            _ => self,
        }
    }
}

/// Refuses a call from within an executive that is for the program around it.
pub(super) fn not_within() -> Result<(), Failure> {
    if current().is_some() {
        return Err(Failure::new(
            HS_E_CALLER,
            "make a call of the program around an executive: it comes from a task or procedure",
        ));
    }
    Ok(())
}
