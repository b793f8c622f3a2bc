//! Planning a set-up before buying it.
