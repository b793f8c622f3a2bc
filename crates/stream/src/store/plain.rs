//! The store on plain calls: one operation after the other.
