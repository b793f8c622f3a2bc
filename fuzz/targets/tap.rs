//! Fuzzes the check `tap`; its promises are in `fuzz/checks/src/tap.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::tap::check(bytes));
