//! Fuzzes the check `topology`; its promises are in `fuzz/checks/src/topology.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::topology::check(bytes));
