//! Online monitors that look on.
