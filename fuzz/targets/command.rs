//! Fuzzes the check `command`; its promises are in `fuzz/checks/src/command.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::command::check(bytes));
