//! Mutation runs: cargo-mutants breaks each function of the cores, and the crate's own tests must find every break.
//!
//! All mutants of a part are tried in one build first, each behind a switch; what has no place for a switch is then
//! built one by one, which takes hours. So there is one proof per part, and results are kept in `target/mutants/PART`:
//! a run that reached its limit goes on where it stopped. What has not been tried yet is counted in the report, and the
//! proof has not passed. `xtask/prover/mutants.toml` lists the mutants that may live, each with its reason.

use super::Proof;

/// How long one run of a part may take; the prover ends itself a little earlier and keeps what it has.
const LIMIT_S: u64 = 3 * 3_600 + 600;

const fn part(name: &'static str, command: &'static [&'static str]) -> Proof {
    let claim = "Each change that cargo-mutants makes to this part's code is found by the crate's own tests, or mutants.toml \
                 says why it may live.";
    Proof { name, claim, command, limit_s: LIMIT_S }
}

/// The proof that draws a sample.
pub(super) const SAMPLE: &str = "mutants-sample";

pub(super) const PROOFS: &[Proof] = &[
    part("mutants-exec-core", &["mutants", "exec-core", "--seconds", "10800"]),
    part("mutants-machine", &["mutants", "machine", "--seconds", "10800"]),
    part("mutants-time", &["mutants", "time", "--seconds", "10800"]),
    part("mutants-ring", &["mutants", "ring", "--seconds", "10800"]),
    part("mutants-journal", &["mutants", "journal", "--seconds", "10800"]),
    part("mutants-recorder", &["mutants", "recorder", "--seconds", "10800"]),
    part("mutants-recover", &["mutants", "recover", "--seconds", "10800"]),
    Proof {
        name: SAMPLE,
        claim: "Of a random sample of the changes that cargo-mutants makes to all parts, each is found by the crate's own tests, or \
                mutants.toml says why it may live. What survives of the sample bounds what survives of all.",
        command: &["mutants-sample", "--seconds", "10800"],
        limit_s: LIMIT_S,
    },
];
