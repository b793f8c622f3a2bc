//! Exports as an independent reader sees them.

mod every_format;
