//! What takes a played stream.
