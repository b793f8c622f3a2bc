//! Requests to a running station: whatever is understood is printed as it is understood again.

use hairspring_station::command::parse;

/// Checks what the module promises.
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
