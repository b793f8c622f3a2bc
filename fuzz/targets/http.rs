//! Fuzzes the check `http`; its promises are in `fuzz/checks/src/http.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hairspring_fuzz_checks::http::check(bytes));
