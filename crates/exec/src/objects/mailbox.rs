//! Where typed messages are sent: the mailboxes of a task, and exchanges.

use std::fmt;
use std::marker::PhantomData;

use hairspring_exec_core::{ExchangeId, TaskId};

macro_rules! typed_handle {
    ($(#[$text:meta])* $name:ident, $field:ident: $id:ty) => {
        $(#[$text])*
        pub struct $name<M: Copy> {
            pub(crate) $field: $id,
            /// The executive that made it. In another one its number means another object, of another type.
            pub(crate) home: u32,
            message: PhantomData<fn(M) -> M>,
        }

        impl<M: Copy> $name<M> {
            pub(crate) fn new($field: $id, home: u32) -> Self {
                Self { $field, home, message: PhantomData }
            }

            /// Its id.
            pub fn id(self) -> $id {
                self.$field
            }
        }

        impl<M: Copy> Clone for $name<M> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<M: Copy> Copy for $name<M> {}

        impl<M: Copy> fmt::Debug for $name<M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.$field.fmt(f)
            }
        }
    };
}

typed_handle! {
    /// The mailboxes of a task that takes messages of type `M`.
    Mailbox, task: TaskId
}

typed_handle! {
    /// A message exchange for messages of type `M`: the first waiter gets the next message.
    Exchange, exchange: ExchangeId
}
