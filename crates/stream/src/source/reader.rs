//! Files, pipes, the standard input and TCP connections as sources.
