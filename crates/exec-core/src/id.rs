//! Names of the executive's objects: small copyable numbers, checked against a generation where objects can be deleted.

use core::fmt;

macro_rules! ids {
    ($($(#[$text:meta])* $name:ident $label:literal;)*) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            pub(crate) index: u16,
            pub(crate) generation: u16,
        }

        impl $name {
            /// The slot of the object: 0 to 65,534, used again after the object was deleted.
            #[inline]
            pub fn index(self) -> usize {
                usize::from(self.index)
            }

            /// The id as one number, for traces and tables.
            #[inline]
            pub fn number(self) -> u32 {
                u32::from(self.generation) << 16 | u32::from(self.index)
            }

            /// The id that [`number`](Self::number) came from. A number that never was an id is refused by every call.
            #[inline]
            pub fn from_number(number: u32) -> Self {
                Self { index: (number & 0xffff) as u16, generation: (number >> 16) as u16 }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($label, "{}"), self.index)?;
                if self.generation > 0 { write!(f, ".{}", self.generation) } else { Ok(()) }
            }
        }
    )*};
}

ids! {
    /// A task.
    TaskId "T";
    /// A counting semaphore.
    SemaphoreId "S";
    /// An owned, nestable resource.
    ResourceId "R";
    /// An event group of 32 bits.
    EventsId "E";
    /// A message exchange.
    ExchangeId "X";
    /// A pool of buffers.
    PoolId "P";
    /// A heap: a memory with blocks of any size.
    HeapId "H";
    /// A timer.
    TimerId "C";
}

/// A task's priority: 0 is the most urgent, 63 the least, as in AMX and ThreadX (and unlike POSIX).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(u8);

impl Priority {
    /// How many there are.
    pub const COUNT: usize = 64;
    /// The most urgent.
    pub const HIGHEST: Self = Self(0);
    /// The least urgent.
    pub const LOWEST: Self = Self(63);

    /// The priority with this number; none above 63.
    #[inline]
    pub const fn new(number: u8) -> Option<Self> {
        if number < 64 { Some(Self(number)) } else { None }
    }

    /// Its number, 0 to 63.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The more urgent of the two.
    #[inline]
    #[must_use]
    pub fn or_more_urgent(self, other: Self) -> Self {
        if other.0 < self.0 { other } else { self }
    }
}

/// One of the four priorities of a message: 0 goes before 3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Urgency(u8);

impl Urgency {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All four, the most urgent first.
    pub const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// The urgency with this number; none above 3.
    #[inline]
    pub const fn new(number: u8) -> Option<Self> {
        if number < 4 { Some(Self(number)) } else { None }
    }

    /// Its number, 0 to 3.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A moment on the clock that the caller of the core uses: nanoseconds since that clock's beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(u64);

impl Moment {
    /// The clock's beginning.
    pub const START: Self = Self(0);

    /// The moment this many nanoseconds after the clock's beginning.
    #[inline]
    pub const fn from_nanos(nanos_ns: u64) -> Self {
        Self(nanos_ns)
    }

    /// Nanoseconds since the clock's beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `span_ns` later; at the far end of the clock it stays there (584 years).
    #[inline]
    #[must_use]
    pub const fn after_nanos(self, span_ns: u64) -> Self {
        Self(self.0.saturating_add(span_ns))
    }
}
