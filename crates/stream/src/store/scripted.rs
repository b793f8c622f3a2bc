//! A disk in memory that fails, stalls and loses power as a list says.
