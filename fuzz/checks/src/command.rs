//! Requests to a running station: an understood request is printed such that it is understood again.

use hairspring_station::command::parse;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    match parse(text) {
        Ok((request, _, _)) => {
            let (again, _, _) = parse(&request.to_string()).expect("what was printed is understood");
            assert_eq!(again, request);
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
