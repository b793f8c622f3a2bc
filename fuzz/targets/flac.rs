//! Fuzzes the check `flac`; its promises are in `fuzz/checks/src/flac.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::flac::check(bytes));
