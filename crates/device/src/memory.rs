//! Mapped memory: pages that processes share, windows of devices, and what happens when a mapping is taken away.

mod mapping;
pub mod page;
mod revoked;
pub mod window;
