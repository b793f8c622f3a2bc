//! Mapped memory: pages that processes share, windows of devices, and the handling of revoked mappings.

mod mapping;
pub mod page;
mod revoked;
pub mod window;
