//! The highest lossless rate, found honestly.
