//! Datagrams as a source.
