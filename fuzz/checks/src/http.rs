//! Requests of browsers to `scope --serve`: an understood request has one target and one host without an end of line,
//! and on loopback only this server's own names are answered.

#[expect(
    dead_code,
    reason = "the server itself is not fuzzed: it reads from sockets, and its threads belong to the command"
)]
#[path = "../../../crates/cli/src/drive/scope/http.rs"]
mod server;

use std::net::{Ipv4Addr, SocketAddr};

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000));
    match server::understand(&String::from_utf8_lossy(bytes)) {
        Ok(request) => {
            assert!(!request.target.contains("\r\n") && !request.target.contains(' '), "{request:?}");
            let own = ["127.0.0.1:8000", "localhost:8000"].contains(&request.host.as_str());
            assert_eq!(server::is_meant(&request.host, local), own, "{request:?}");
        }
        Err(refused) => assert!(refused.status.starts_with('4')),
    }
}
