//! Fuzzes the check `sheet`; its promises are in `fuzz/checks/src/sheet.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::sheet::check(bytes));
