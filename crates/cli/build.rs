//! Notes the origin of the command: commit, compiler, flags. They stand in the conditions of every sheet.

use std::env;
use std::path::Path;
use std::process::Command;

/// File that Cargo adds to a package.
const PACKED: &str = ".cargo_vcs_info.json";

fn main() {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let compiler = said(&rustc, &["--version"]).unwrap_or_else(|| "rustc of unknown version".to_owned());
    // A tree with changes is not the commit. Without its locks git leaves the index alone, whose change would have all
    // built again.
    let dirty = said("git", &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]).is_some();
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"]).map(|c| if dirty { c + "-dirty" } else { c });
    // A package from a registry lies in no repository of ours; Cargo noted the commit in it.
    let commit = if Path::new(PACKED).exists() { packed_commit() } else { commit };
    let variable = |name: &str| env::var(name).unwrap_or_default();
    // These override the profile of the manifest, and change the cost of calls.
    let overridden: String = ["LTO", "CODEGEN_UNITS"]
        .map(|setting| format!("CARGO_PROFILE_{}_{setting}", variable("PROFILE").to_uppercase()))
        .iter()
        .inspect(|name| println!("cargo:rerun-if-env-changed={name}"))
        .filter_map(|name| Some(format!(", {name}={}", env::var(name).ok()?)))
        .collect();
    let flags = format!(
        "{}, opt-level {}, {}{overridden}{}",
        variable("PROFILE"),
        variable("OPT_LEVEL"),
        variable("TARGET"),
        match variable("CARGO_ENCODED_RUSTFLAGS").split('\u{1f}').filter(matters).collect::<Vec<_>>() {
            flags if flags.is_empty() => String::new(),
            flags => format!(", RUSTFLAGS {}", flags.join(" ")),
        }
    );
    println!("cargo:rustc-env=HAIRSPRING_COMPILER={compiler}");
    println!("cargo:rustc-env=HAIRSPRING_COMMIT={}", commit.unwrap_or_default());
    println!("cargo:rustc-env=HAIRSPRING_FLAGS={flags}");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/index");
}

/// Whether a flag changes the code. Replaced paths do not, and they would name the folder of the build.
fn matters(flag: &&str) -> bool {
    !flag.is_empty() && !flag.starts_with("--remap-path-prefix")
}

/// The commit in Cargo's note.
fn packed_commit() -> Option<String> {
    let note = std::fs::read_to_string(PACKED).ok()?;
    let hash = note.split("\"sha1\": \"").nth(1)?.split('"').next()?;
    Some(hash.chars().take(12).collect())
}
