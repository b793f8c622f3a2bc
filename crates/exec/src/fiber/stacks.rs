//! Stacks of fibers: mapped once, with a guard page below, and reused by later fibers.

use corosensei::stack::{DefaultStack, Stack as _, StackPointer};

use crate::system::stack::{StackExtent, page};

/// A stack whose extent is registered for the report of an overflow.
pub(crate) struct Stack {
    memory: DefaultStack,
}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: everything is passed on to a stack that fulfils the contract.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.memory.base()
    }

    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }
}

/// Stacks that are free.
pub(crate) struct Stacks {
    free: Vec<Stack>,
}

impl Stack {
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
            None => Ok(Stack { memory: DefaultStack::new(bytes)? }),
        }
    }

    pub(crate) fn give_back(&mut self, stack: Stack) {
        self.free.push(stack);
    }
}
