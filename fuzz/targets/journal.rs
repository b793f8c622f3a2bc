//! Fuzzes the check `journal`; its promises are in `fuzz/checks/src/journal.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::journal::check(bytes));
