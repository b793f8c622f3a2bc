//! Fuzzes the check `datagrams`; its promises are in `fuzz/checks/src/datagrams.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::datagrams::check(bytes));
