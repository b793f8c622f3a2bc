//! Stacks of fibers: mapped once, with a guard page below, and reused by later fibers; or in memory of the program.

use corosensei::stack::{DefaultStack, Stack as _, StackPointer};

use crate::system::given_stack::StackMemory;
use crate::system::stack::{StackExtent, page};

/// A stack whose extent is registered for the report of an overflow.
pub(crate) enum Stack {
    Mapped(DefaultStack),
    /// In memory of the program, which its task keeps.
    OnMemory(StackExtent),
}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: passed on to a stack that fulfils the contract; or memory that the program handed over, writable from the
// lowest address to the highest, with a guard page below, and kept until the coroutine is gone.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        match self {
            Self::Mapped(stack) => stack.base(),
            Self::OnMemory(extent) => pointer(extent.low + extent.bytes),
        }
    }

    fn limit(&self) -> StackPointer {
        match self {
            Self::Mapped(stack) => stack.limit(),
            // With the guard page, as that of the other.
            Self::OnMemory(extent) => pointer(extent.low - page()),
        }
    }
}

/// Not zero, because no memory lies at address 0.
fn pointer(address: usize) -> StackPointer {
    StackPointer::new(address).unwrap_or(StackPointer::MAX)
}

/// Stacks that are free.
pub(crate) struct Stacks {
    free: Vec<Stack>,
}

impl Stack {
    /// A stack in memory of the program.
    pub(super) fn on_memory(memory: &StackMemory) -> Self {
        Self::OnMemory(memory.extent())
    }

    /// Where it lies, without the guard page.
    pub(super) fn extent(&self) -> StackExtent {
        StackExtent::above_guard(self.limit().get(), self.base().get())
    }
}

impl Stacks {
    pub(crate) fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// A stack of at least this size: one that is free and not larger than a new one, or a new one.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Stack, std::io::Error> {
        let fits = |stack: &Stack| (bytes..bytes + page()).contains(&stack.extent().bytes);
        match self.free.iter().rposition(fits) {
            Some(index) => {
                let stack = self.free.swap_remove(index);
                // So that the next task does not seem to have used what this one did.
                stack.extent().release_pages();
                Ok(stack)
            }
            None => Ok(Stack::Mapped(DefaultStack::new(bytes)?)),
        }
    }

    pub(crate) fn give_back(&mut self, stack: Stack) {
        if matches!(stack, Stack::Mapped(_)) {
            self.free.push(stack);
        }
    }
}
