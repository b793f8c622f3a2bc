//! Proofs that are runs of something else: tests, steps of `cargo xtask test`, the virtual machine.

pub(crate) mod c_sanitizers;
pub(crate) mod cargo_test;
pub(crate) mod lab;
pub(crate) mod steps;
