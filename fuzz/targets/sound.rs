//! Fuzzes the check `sound`; its promises are in `fuzz/checks/src/sound.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::sound::check(bytes));
