//! Fuzzes the check `description`; its promises are in `fuzz/checks/src/description.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::description::check(bytes));
