//! Proofs about the packages that users get: crates, Debian packages, a source distribution, a release, and their
//! components.
//!
//! Each is a list of shell commands with the figures that they print as lines `figure NAME: VALUE`. `$T` is an empty
//! folder on the disk of the target directory. A command that cannot be tried here prints `not run: WHY` and ends with
//! 77.

use std::process::Command;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::{NOT_RUN, Verdict};

/// A step: its name, and the words for `sh -eu`.
type Step = (&'static str, &'static str);

/// Each crate is compiled out of its package, in the order of their dependencies.
const CRATES: &[Step] = &[(
    "cargo package",
    "list=$(cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys\n\
     for p in json.load(sys.stdin)[\"packages\"]:\n    if p[\"publish\"] is None: print(\"-p\", p[\"name\"])')\n\
     cargo package --locked --allow-dirty --target-dir $T/target $list\n\
     echo figure crates: $(ls $T/target/package/*.crate | wc -l)",
)];

/// Two copies of the commit in folders of different names; in each the release is made. `$PARTS` are options that
/// choose its parts. A part that is left out is counted, and the proof has not been run as a whole.
const RELEASE: &[Step] = &[
    (
        "two releases",
        "copies=$(mktemp -d /var/tmp/hairspring-release.XXXXXX); echo $copies > $T/copies\n\
         git worktree add --quiet --detach $copies/one HEAD; git worktree add --quiet --detach $copies/another-folder HEAD\n\
         for copy in one another-folder; do\n\
           mkdir -p $copies/$copy/target/xtask\n\
           for tools in aarch64 python release-tools; do\n\
             if test -e target/xtask/$tools; then ln -s $PWD/target/xtask/$tools $copies/$copy/target/xtask/$tools; fi\n\
           done\n\
           begun=$(date +%s)\n\
           (cd $copies/$copy && unset CARGO_TARGET_DIR && cargo xtask release $PARTS --out $copies/$copy.files) > $T/$copy.said || test $? = 1\n\
           cat $T/$copy.said; echo figure $copy, s: $(($(date +%s) - begun))\n\
         done",
    ),
    (
        "the same bytes",
        "copies=$(cat $T/copies)\n\
         diff $copies/one.files/SHA256SUMS $copies/another-folder.files/SHA256SUMS > $T/differ || {\n\
           echo \"both are kept in $copies; these differ: $(sed -n 's/^[<>] [0-9a-f]*  //p' $T/differ | sort -u | tr '\\n' ' ')\" >&2; exit 1; }\n\
         (cd $copies/one.files && sha256sum --quiet --check SHA256SUMS)\n\
         echo figure equal files: $(wc -l < $copies/one.files/SHA256SUMS)\n\
         echo figure bytes: $(cat $copies/one.files/* | wc -c)",
    ),
    (
        "nothing left out",
        "copies=$(cat $T/copies)\n\
         echo figure parts left out: $(grep -c '^left out ' $T/one.said || true)\n\
         for copy in one another-folder; do git worktree remove --force $copies/$copy; done; rm -rf $copies\n\
         if grep '^left out ' $T/one.said > $T/absent; then echo \"not run: as a whole: $(head -n 1 $T/absent)\"; exit 77; fi",
    ),
];

/// The whole life of the Debian packages, and a wheel and the source distribution in environments of their own.
const PACKAGES: &[Step] = &[
    ("Debian packages", "cargo xtask test --only debian && echo figure Debian steps: 1"),
    (
        "source distribution",
        // Outside of the repository, so that nothing of it can be found by looking upwards; and without the network.
        // Its Cargo.lock names members of the workspace that it lacks, so Cargo shortens that file, and keeps the
        // versions.
        "version=$(sed -n 's/^maturin==//p' bindings/python/requirements.txt)\n\
         python3 -m venv $T/build && $T/build/bin/pip install --quiet maturin==$version\n\
         $T/build/bin/python -m maturin sdist --manifest-path bindings/python/Cargo.toml --out $T/sdist\n\
         cargo fetch --quiet --locked\n\
         far=$(mktemp -d /var/tmp/hairspring-sdist.XXXXXX); trap 'rm -rf $far' EXIT\n\
         tar -xzf $T/sdist/*.tar.gz -C $far && cd $far/hairspring-*\n\
         GIT_DIR=/nonexistent CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$far/target $T/build/bin/python -m maturin build --quiet --release --offline \
         --compatibility linux --out $far/wheel\n\
         python3 -m venv $far/alone && $far/alone/bin/pip install --quiet --no-index --no-deps $far/wheel/*.whl\n\
         cd $far && $far/alone/bin/python -c 'import sys, hairspring; assert not {\"numpy\", \"pandas\", \"dask\", \"xarray\", \"p4p\"} & set(sys.modules); \
         assert hairspring.delay(50e-6).late_ns >= 0; assert hairspring.__file__.startswith(sys.prefix), hairspring.__file__'\n\
         echo figure files in the source distribution: $(find $far/hairspring-* -type f | wc -l)\n\
         echo figure bytes of its wheel: $(stat -c %s $far/wheel/*.whl)",
    ),
];

/// Licences, bans and sources by the manifests alone; advisories by a list that the tool fetches, or by the one that it
/// fetched last.
const DENY: &[Step] = &[
    (
        "licences, bans and sources",
        "cargo deny --version || { echo 'not run: cargo deny is not installed; cargo install --locked cargo-deny'; exit 77; }\n\
         cargo deny --locked check licenses bans sources\n\
         echo figure crates: $(grep -c '^name = ' Cargo.lock)\n\
         echo figure checks: 3",
    ),
    (
        "advisories",
        "if cargo deny --locked check advisories > $T/said 2>&1; then fetched=newest\n\
         elif ! grep -q 'failed to fetch advisory database' $T/said; then cat $T/said >&2; exit 1\n\
         else fetched='newest that was fetched earlier'; cat $T/said; fi\n\
         for list in ${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/.git; do :; done\n\
         if test -e $list; then cargo deny --locked --offline check advisories >&2; echo figure advisories: 0\n\
           echo \"figure list of advisories: of $(git --git-dir $list log -1 --format=%cs), the $fetched\"\n\
         else echo 'figure advisories: skipped, their list cannot be fetched here'; echo figure checks skipped: 1; fi",
    ),
];

pub(crate) fn prove_crates() -> Verdict {
    prove(CRATES)
}

pub(crate) fn prove_packages() -> Verdict {
    prove(PACKAGES)
}

/// The release, or these parts of it.
pub(crate) fn prove_release(parts: &[String]) -> Verdict {
    let options: Vec<String> = parts.iter().flat_map(|part| ["--only".to_owned(), part.clone()]).collect();
    prove_with(RELEASE, &[("PARTS", options.join(" "))])
}

pub(crate) fn prove_deny() -> Verdict {
    prove(DENY)
}

fn prove(steps: &[Step]) -> Verdict {
    prove_with(steps, &[])
}

/// Runs the steps with these variables.
fn prove_with(steps: &[Step], variables: &[(&str, String)]) -> Verdict {
    let mut figures = Map::new();
    // Not in memory: a release is large.
    let place = std::fs::create_dir_all("target").and_then(|()| tempfile::tempdir_in("target"));
    let outcome = place.map_err(|error| format!("make a folder: {error}")).and_then(|folder| {
        let folder = std::path::absolute(folder.path()).map_err(|error| error.to_string())?;
        steps.iter().try_for_each(|(name, words)| {
            let begun = Instant::now();
            let said = run(name, words, &folder, variables)?;
            figures.extend(figures_in(&said));
            figures.insert(format!("{name}, s"), json!(begun.elapsed().as_secs()));
            Ok(())
        })
    });
    if let Err(why) = &outcome {
        let (name, why) = why.strip_prefix(CANNOT).map_or(("defect", why.as_str()), |why| (NOT_RUN, why));
        figures.insert(name.to_owned(), json!(why));
    }
    Verdict { passed: outcome.is_ok(), figures }
}

/// Prefix of a step's output if it cannot be tried here.
const CANNOT: &str = "not run: ";

fn run(name: &str, words: &str, folder: &std::path::Path, variables: &[(&str, String)]) -> Result<String, String> {
    println!("{name}:\n{words}");
    let output = Command::new("sh").args(["-euc", words]).env("T", folder).envs(variables.iter().cloned()).output();
    let output = output.map_err(|error| format!("{name}: run sh: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}{errors}");
    if output.status.success() {
        return Ok(said);
    }
    if let Some(why) = said.lines().find(|line| line.starts_with(CANNOT)).filter(|_| output.status.code() == Some(77)) {
        return Err(why.to_owned());
    }
    let last: Vec<&str> = errors.lines().rev().take(3).collect();
    Err(format!("{name}: {}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" | ")))
}

/// The lines `figure NAME: VALUE`.
fn figures_in(said: &str) -> Vec<(String, Value)> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("figure ")?.split_once(": "));
    lines
        .map(|(name, value)| (name.to_owned(), value.parse::<u64>().map_or_else(|_| json!(value), |n| json!(n))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_is_a_defect_and_figures_are_read() {
        let good = prove(&[("count", "echo figure lines: 3; echo other")]);
        assert!(good.passed && good.figures["lines"] == json!(3));
        let bad = prove(&[("first", "false"), ("second", "echo figure lines: 3")]);
        assert!(!bad.passed && bad.figures["defect"].as_str().is_some_and(|why| why.starts_with("first")));
        let absent = prove(&[("tool", "echo 'not run: no tool'; exit 77")]);
        assert_eq!((absent.passed, &absent.figures[NOT_RUN]), (false, &json!("no tool")));
    }
}
