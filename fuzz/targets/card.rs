//! Fuzzes the check `card`; its promises are in `fuzz/checks/src/card.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::card::check(bytes));
