//! Fuzzes the check `state`; its promises are in `fuzz/checks/src/state.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::state::check(bytes));
