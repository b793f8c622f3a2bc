//! Fuzzes the check `requirement`; its promises are in `fuzz/checks/src/requirement.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::requirement::check(bytes));
