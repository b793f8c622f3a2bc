//! Verification: checksums, counters, ledger.
