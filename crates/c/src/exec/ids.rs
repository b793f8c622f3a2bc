//! Ids of tasks and objects: the kind, the executive and the core's number, in one word.
//!
//! ```text
//!   63      56 55                  32 31                 0
//!   ┌─────────┬──────────────────────┬────────────────────┐
//!   │  kind   │  executive, from 1   │  number in it      │     zero is no id
//!   └─────────┴──────────────────────┴────────────────────┘
//! ```

/// A task. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_task {
    /// Of the library.
    pub id: u64,
}

/// A timer. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_timer {
    /// Of the library.
    pub id: u64,
}

/// A counting semaphore. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_semaphore {
    /// Of the library.
    pub id: u64,
}

/// A resource that one task at a time owns. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_resource {
    /// Of the library.
    pub id: u64,
}

/// A group of 32 event bits. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_events {
    /// Of the library.
    pub id: u64,
}

/// A message exchange: four queues, by urgency. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_exchange {
    /// Of the library.
    pub id: u64,
}

/// The kind of object that an id names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum IdKind {
    Task = 1,
    Timer = 2,
    Semaphore = 3,
    Resource = 4,
    Events = 5,
    Exchange = 6,
}

/// The number of executives with distinct numbers; the next one has the number of the first.
pub(super) const HOMES: u32 = (1 << 24) - 1;

const fn upper(kind: IdKind, home: u32) -> u32 {
    (kind as u32) << 24 | home
}

/// The id of an object.
pub(super) fn id(kind: IdKind, home: u32, number: u32) -> u64 {
    u64::from(upper(kind, home)) << 32 | u64::from(number)
}

/// The core's number in an id, if it is of this kind and executive.
#[inline(always)]
pub(super) fn number(id: u64, kind: IdKind, home: u32) -> Option<u32> {
    ((id >> 32) as u32 == upper(kind, home)).then_some(id as u32)
}

/// The executive in an id, if it is of this kind.
pub(super) fn home(id: u64, kind: IdKind) -> Option<u32> {
    let home = (id >> 32) as u32 & HOMES;
    ((id >> 56) as u8 == kind as u8 && home != 0).then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_one_kind_and_one_executive() {
        for (index, kind) in
            [IdKind::Task, IdKind::Timer, IdKind::Semaphore, IdKind::Resource, IdKind::Events, IdKind::Exchange]
                .into_iter()
                .enumerate()
        {
            for (executive, of) in [(1, 0), (HOMES, u32::MAX)] {
                let made = id(kind, executive, of);
                assert_eq!((number(made, kind, executive), home(made, kind)), (Some(of), Some(executive)), "{index}");
                assert_eq!(number(made, kind, executive ^ 1), None, "{index}");
                let other = if kind == IdKind::Task { IdKind::Timer } else { IdKind::Task };
                assert_eq!((number(made, other, executive), home(made, other)), (None, None), "{index}");
            }
        }
        assert_eq!((number(0, IdKind::Task, 1), home(0, IdKind::Task)), (None, None));
    }
}
