//! The state: records of tasks, objects, messages and deadlines, and the lists that chain them. Nothing here decides.

pub(crate) mod arena;
pub(crate) mod core;
pub(crate) mod link;
pub(crate) mod mail;
pub(crate) mod objects;
pub(crate) mod queue;
pub(crate) mod ready;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod timers;
pub(crate) mod wheel;
