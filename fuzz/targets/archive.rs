//! Fuzzes the check `archive`; its promises are in `fuzz/checks/src/archive.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::archive::check(bytes));
