//! Each check holds on its seeds and on simple changes of them. So a check that does not compile any more, or a seed
//! that breaks a promise, shows in every run of the tests; the fuzzer itself needs the nightly toolchain.

use std::path::{Path, PathBuf};

use hairspring_fuzz_checks::CHECKS;

/// Changes of each seed.
const CHANGES: usize = 40;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn seeds(name: &str) -> Vec<(String, Vec<u8>)> {
    let files =
        std::fs::read_dir(folder("seeds").join(name)).unwrap_or_else(|error| panic!("seeds of {name}: {error}"));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("listed").path()).collect();
    files.sort();
    files.iter().map(|file| (file.display().to_string(), std::fs::read(file).expect("read"))).collect()
}

/// A seed with some bytes that are cut, doubled or others.
fn changed(seed: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(0..=bytes.len());
        match random.u8(0..4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 => {
                let end = (at + random.usize(0..20)).min(bytes.len());
                bytes.extend_from_within(at..end);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.u8(0..8),
            _ => bytes.clear(),
        }
    }
    bytes
}

#[test]
fn every_check_holds_on_its_seeds_and_on_changes_of_them() {
    for (name, check) in CHECKS {
        let mut random = fastrand::Rng::with_seed(1);
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seed");
        for (file, seed) in seeds {
            println!("{file}");
            check(&seed);
            for _ in 0..CHANGES {
                let bytes = changed(&seed, &mut random);
                // A panic shows the last line that was printed.
                println!("  {:?}", bytes.escape_ascii().to_string());
                check(&bytes);
            }
        }
    }
}

#[test]
fn every_check_has_a_target_and_every_target_a_check() {
    let mut targets: Vec<String> = std::fs::read_dir(folder("targets"))
        .expect("targets")
        .filter_map(|file| Some(file.expect("listed").path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(targets, names);
    let manifest = std::fs::read_to_string(folder("Cargo.toml")).expect("a manifest");
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"targets/{name}.rs\"")), "{name}");
        let target = std::fs::read_to_string(folder("targets").join(format!("{name}.rs"))).expect("a target");
        assert!(target.contains(&format!("hairspring_fuzz_checks::{name}::check(bytes)")), "{name}");
    }
}
