//! Fuzzes the check `sigmf`; its promises are in `fuzz/checks/src/sigmf.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::sigmf::check(bytes));
