//! Fuzzes the check `channels`; its promises are in `fuzz/checks/src/channels.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::channels::check(bytes));
