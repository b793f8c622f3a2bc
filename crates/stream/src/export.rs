//! Recordings in other formats.
