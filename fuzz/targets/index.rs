//! Fuzzes the check `index`; its promises are in `fuzz/checks/src/index.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::index::check(bytes));
