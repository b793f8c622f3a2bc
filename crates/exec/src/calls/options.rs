//! [`TaskOptions`]: what a task can be given beside its name and its priority.

use hairspring_exec_core::Priority;

use crate::engine::TaskStack;
use crate::system::given_stack::StackMemory;

/// The smallest stack. A smaller wish gets this much.
pub const LEAST_STACK_BYTES: usize = 16 * 1024;

/// Options of a task beside its name and its priority. The default is that of [`Create::task`](super::Create::task).
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Inspect, Priority, RunLimit, Services, TaskOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
/// let options = TaskOptions::default().with_stack_bytes(1 << 20);
/// let parser = executive.task_with("parser", Priority::LOWEST, options, |_| {
///     let table = std::hint::black_box([0_u8; 300_000]);
///     assert_eq!(table[299_999], 0);
/// })?;
/// executive.trigger(parser)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// let stack = executive.stack_use(parser).expect("it has run");
/// assert!(stack.bytes >= 1 << 20 && stack.used_bytes >= 300_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TaskOptions {
    /// The stack in bytes, rounded up to pages; none: [`ExecConfig::stack_bytes`](crate::ExecConfig). The caution there
    /// about procedures on the stacks of tasks applies. At least [`LEAST_STACK_BYTES`].
    pub stack_bytes: Option<usize>,
    /// Memory of the program for the stack, in place of a size; none: the executive's own memory.
    pub stack: Option<StackMemory>,
    /// A [threshold](super::Threshold) that each run begins with; none: any more urgent task preempts it.
    pub threshold: Option<Priority>,
}

impl TaskOptions {
    /// A task with a stack of its own size.
    #[must_use]
    pub fn with_stack_bytes(self, bytes: usize) -> Self {
        Self { stack_bytes: Some(bytes), ..self }
    }

    /// A task whose stack is in memory of the program. It is the program's again when the task is deleted, or with the
    /// executive. With threads a task that never ends (see [`ExecConfig::watchdog`](crate::ExecConfig::watchdog)) keeps
    /// it for ever.
    #[must_use]
    pub fn with_stack(self, memory: StackMemory) -> Self {
        Self { stack: Some(memory), ..self }
    }

    /// A task that only tasks more urgent than this preempt.
    #[must_use]
    pub fn with_threshold(self, priority: Priority) -> Self {
        Self { threshold: Some(priority), ..self }
    }

    /// The stack, which is taken out.
    pub(super) fn take_stack(&mut self) -> TaskStack {
        match (self.stack.take(), self.stack_bytes) {
            (Some(memory), _) => TaskStack::Memory(memory),
            // More than any address space has is refused by the system; more than a number holds would be a panic
            // there.
            (None, Some(bytes)) => TaskStack::Bytes(bytes.clamp(LEAST_STACK_BYTES, 1 << 46)),
            (None, None) => TaskStack::Usual,
        }
    }
}
