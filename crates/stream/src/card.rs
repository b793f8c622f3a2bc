//! [`Card`]: a source as written on a command line.
