//! A server of a page and its data for a few browsers: GET only, one request for each connection.
//!
//! Every connection has a thread of its own, which ends after [`PATIENCE`] even if the browser does not read, and there
//! are at most [`CONNECTIONS_MOST`]. So a browser that never reads, or never sends, blocks no other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections at once.
const CONNECTIONS_MOST: usize = 32;
/// Time limit for a browser to send its request, and then to take a piece of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request with its heads.
const REQUEST_MOST: usize = 8 << 10;

/// A GET that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The path, with the query string.
    pub(super) target: String,
    /// The server's name, as the browser calls it.
    pub(super) host: String,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(status: &'static str, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{text}\n").into_bytes() }
    }
}

/// Answers requests until the process ends. Returns only if connections can no longer be accepted.
pub(super) fn serve(listener: &TcpListener, answer: &(impl Fn(&Request) -> Answer + Sync)) -> io::Error {
    let local = match listener.local_addr() {
        Ok(local) => local,
        Err(error) => return error,
    };
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return error,
                // Descriptors are short, or the browser left.
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                }
            };
            // Relaxed: a count that only this thread raises.
            if open.load(Ordering::Relaxed) >= CONNECTIONS_MOST {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let place = Place(Arc::clone(&open));
            // If the thread is refused, the connection is closed.
            let _ = std::thread::Builder::new().name("browser".to_owned()).spawn_scoped(scope, move || {
                let _place = place;
                // The browser has left or is too slow; that concerns no other connection.
                let _ = converse(&stream, local, answer);
            });
        }
    })
}

/// One of the permitted connections, released on drop.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn converse(mut stream: &TcpStream, local: SocketAddr, answer: &impl Fn(&Request) -> Answer) -> io::Result<()> {
    let begun = Instant::now();
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        let count = stream.read(&mut piece)?;
        if count == 0 || request.len() + count > REQUEST_MOST {
            return Ok(());
        }
        request.extend_from_slice(&piece[..count]);
    }
    let answer = match understand(&String::from_utf8_lossy(&request)) {
        Err(refused) => refused,
        Ok(request) if !is_meant(&request.host, local) => {
            Answer::text("421 Misdirected Request", "this server answers to its own address only")
        }
        Ok(request) => answer(&request),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut rest = &answer.body[..];
    while !rest.is_empty() && begun.elapsed() < 2 * PATIENCE {
        let count = stream.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

/// Reads a request.
pub(super) fn understand(text: &str) -> Result<Request, Answer> {
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    match (method, target, version, host) {
        (Some("GET"), Some(target), Some(version), Some(host)) if version.starts_with("HTTP/1.") => {
            Ok(Request { target: target.to_owned(), host })
        }
        (Some(_), Some(_), Some(version), _) if version.starts_with("HTTP/1.") => {
            Err(Answer::text("405 Method Not Allowed", "only GET, with a Host"))
        }
        _ => Err(Answer::text("400 Bad Request", "this is no request of HTTP/1.1")),
    }
}

/// Whether a browser means this server. A page of another site could make its own name point to this computer (DNS
/// rebinding): then the browser would let that page read the answers. A server that others may reach anyway takes any
/// name.
pub(super) fn is_meant(host: &str, local: SocketAddr) -> bool {
    !local.ip().is_loopback() || host == local.to_string() || host == format!("localhost:{}", local.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_understood_or_refused() {
        let request = understand("GET /trace?from=3 HTTP/1.1\r\nhost: localhost:80\r\n\r\n").ok().expect("understood");
        assert_eq!(request, Request { target: "/trace?from=3".to_owned(), host: "localhost:80".to_owned() });
        for (text, status) in [
            ("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
            ("GET / HTTP/1.1\r\n\r\n", "405"),
            ("GET /\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}", "400"),
            ("", "400"),
        ] {
            assert!(understand(text).expect_err("refused").status.starts_with(status), "{text}");
        }
    }

    #[test]
    fn a_name_of_another_site_is_not_meant_on_loopback() {
        let local: SocketAddr = "127.0.0.1:8000".parse().expect("an address");
        assert!(is_meant("127.0.0.1:8000", local) && is_meant("localhost:8000", local));
        assert!(!is_meant("evil.example:8000", local) && !is_meant("127.0.0.1", local));
        assert!(is_meant("rig.example:8000", "0.0.0.0:8000".parse().expect("an address")));
    }
}
