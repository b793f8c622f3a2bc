//! [`CircularList`]: a list of fixed length, filled and emptied at both ends without waiting, from tasks and
//! procedures.

use std::collections::VecDeque;
use std::sync::Arc;

use super::guarded::Guarded;
use super::waiting::{Common, delete, step_of};
use crate::calls::{CallSite, Create};
use crate::errors::ObjectError;

/// A list with a fixed number of slots, in which values are added and removed at the top and at the bottom. Cloning it
/// makes another handle of the same list.
///
/// No call waits: a full list and an empty one are answers. Each call is one step of the executive, so tasks, timer
/// procedures and interrupt procedures share a list without a lock. Added at one end and removed at the other it is a
/// queue; at the same end, a stack. One task alone needs no executive for that: take [`VecDeque`]. All memory is
/// allocated when the list is made.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let list = executive.circular_list::<u16>(2);
/// assert!(list.add_bottom(&executive, 1)? && list.add_top(&executive, 2)?);
/// assert!(!list.add_bottom(&executive, 3)?, "it is full");
/// assert_eq!((list.remove_top(&executive)?, list.remove_top(&executive)?), (Some(2), Some(1)));
/// assert_eq!(list.remove_bottom(&executive)?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CircularList<T: Copy + Send + 'static> {
    state: Common<Slots<T>>,
}

struct Slots<T> {
    values: VecDeque<T>,
    slots: usize,
}

impl<T: Copy + Send + 'static> CircularList<T> {
    pub(crate) fn new(site: &(impl Create + ?Sized), slots: usize) -> Self {
        let values = VecDeque::with_capacity(slots);
        Self { state: Arc::new(Guarded::new(site.caller().back_end.home(), Slots { values, slots })) }
    }

    /// Adds a value at the top. False: the list is full.
    ///
    /// # Errors
    /// The list was deleted, or belongs to another executive.
    pub fn add_top(&self, site: &(impl CallSite + ?Sized), value: T) -> Result<bool, ObjectError> {
        self.add(site, |values| values.push_front(value))
    }

    /// Adds a value at the bottom. False: the list is full.
    ///
    /// # Errors
    /// The list was deleted, or belongs to another executive.
    pub fn add_bottom(&self, site: &(impl CallSite + ?Sized), value: T) -> Result<bool, ObjectError> {
        self.add(site, |values| values.push_back(value))
    }

    /// Removes the value at the top. None: the list is empty.
    ///
    /// # Errors
    /// The list was deleted, or belongs to another executive.
    pub fn remove_top(&self, site: &(impl CallSite + ?Sized)) -> Result<Option<T>, ObjectError> {
        self.step(site, |state| state.values.pop_front())
    }

    /// Removes the value at the bottom. None: the list is empty.
    ///
    /// # Errors
    /// The list was deleted, or belongs to another executive.
    pub fn remove_bottom(&self, site: &(impl CallSite + ?Sized)) -> Result<Option<T>, ObjectError> {
        self.step(site, |state| state.values.pop_back())
    }

    /// How many values are in it.
    ///
    /// # Errors
    /// The list was deleted, or belongs to another executive.
    pub fn count(&self, site: &(impl CallSite + ?Sized)) -> Result<usize, ObjectError> {
        self.step(site, |state| state.values.len())
    }

    /// Deletes the list and its values: every later use by any handle is refused.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        delete(site, &self.state, |_| [const { None }; 3])
    }

    fn add(&self, site: &(impl CallSite + ?Sized), put: impl Fn(&mut VecDeque<T>)) -> Result<bool, ObjectError> {
        self.step(site, |state| {
            let has_room = state.values.len() < state.slots;
            if has_room {
                put(&mut state.values);
            }
            has_room
        })
    }

    fn step<R>(&self, site: &(impl CallSite + ?Sized), act: impl Fn(&mut Slots<T>) -> R) -> Result<R, ObjectError> {
        let mut result = Err(ObjectError::NoSuchObject);
        step_of(site, &mut |step| {
            result = Ok(act(self.state.open(step)?));
            None
        });
        result
    }
}
