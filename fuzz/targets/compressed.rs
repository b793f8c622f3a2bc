//! Fuzzes the check `compressed`; its promises are in `fuzz/checks/src/compressed.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::compressed::check(bytes));
