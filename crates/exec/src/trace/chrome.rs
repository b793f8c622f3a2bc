//! Chrome.
