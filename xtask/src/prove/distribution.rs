//! The proofs of what strangers install: crates, packages, a whole release, and what they are made of.

use super::Proof;

/// What strangers install. Each builds everything anew with link-time optimisation, so only when they are named.
pub(super) const PROOFS: &[Proof] = &[
    Proof {
        name: "crates",
        claim: "Each crate that can be published compiles out of its own package.",
        command: &["crates"],
        limit_s: 3600,
    },
    Proof {
        name: "packages",
        claim: "The Debian packages have no error of lintian and are installed, used and purged in a clean system without a trace. The source \
                distribution for Python builds a wheel from what it holds, outside of the repository and without a network; in an environment that has \
                nothing else it works and imports no extra.",
        command: &["packages"],
        limit_s: 3600,
    },
    Proof {
        name: "release",
        claim: "Two releases, made one after the other out of copies of the commit in folders of different names, are equal byte for byte, and no part is \
                left out.",
        command: &["release"],
        limit_s: 4 * 3600,
    },
    Proof {
        name: "deny",
        claim: "All crates have licences and sources that deny.toml accepts, and none is banned there. None of them has an \
                advisory, by the newest list that can be fetched here, whose date the figure says; where there is no list at all, that check is \
                counted as skipped.",
        command: &["deny"],
        limit_s: 600,
    },
];
