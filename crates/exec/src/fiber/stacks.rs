//! Stacks of fibers: mapped once, with a guard page below, and reused by later fibers.

use corosensei::stack::{DefaultStack, StackPointer};

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
    bytes: usize,
    free: Vec<Stack>,
}

impl Stacks {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, free: Vec::new() }
    }

    pub(crate) fn take(&mut self) -> Result<Stack, std::io::Error> {
        match self.free.pop() {
            Some(stack) => Ok(stack),
            None => Ok(Stack { memory: DefaultStack::new(self.bytes)? }),
        }
    }

    pub(crate) fn give_back(&mut self, stack: Stack) {
        self.free.push(stack);
    }
}
