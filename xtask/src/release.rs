//! `cargo xtask release`: everything that a version consists of, in one folder, with checksums and a bill of materials.
//!
//! | part | files |
//! |---|---|
//! | `crates` | one `.crate` for each crate that can be published |
//! | `debian` | the Debian packages of this architecture |
//! | `wheels` | wheels for Python 3.10 or later: glibc 2.28 and musl 1.2, x86-64 and aarch64; the source distribution |
//! | `static` | the command for x86-64 Linux, linked with musl, which needs no library |
//! | `windows` | an archive for 64-bit Windows: command, DLL, import libraries, headers |
//! | always | `hairspring-VERSION.cdx.json` (CycloneDX), `SHA256SUMS` |
//!
//! The same sources make the same files, byte for byte, in whatever folder and whenever: files carry the time of the
//! last commit or `SOURCE_DATE_EPOCH`, and paths of this machine are replaced in the binaries. A part whose tools are
//! missing is left out and named, and the task then ends with 1. Python's tools and a C compiler for other systems come
//! from PyPI (`packaging/requirements.txt`) into the target directory; Rust's standard libraries for them come from
//! rustup.

mod bill;
mod parts;
mod tools;
mod trial;
mod wheels;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;
use crate::{library, reproducible};

/// The file with the checksums, as `sha256sum --check` reads it.
const CHECKSUMS: &str = "SHA256SUMS";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Make only these parts: crates, debian, wheels, static, windows
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// The folder of the files, new, empty, or that of an earlier release [default: release-files under the target
    /// directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One part of a release: its name, and the function that puts its files into a folder.
struct Part {
    name: &'static str,
    make: fn(&Making) -> Result<(), String>,
}

const PARTS: [Part; 5] = [
    Part { name: "crates", make: parts::crates },
    Part { name: "debian", make: parts::debian },
    Part { name: "wheels", make: wheels::all },
    Part { name: "static", make: parts::static_command },
    Part { name: "windows", make: windows::archive },
];

/// A release that is being made.
struct Making<'a> {
    workspace: &'a Workspace,
    /// Folder for the files.
    out: &'a Path,
    /// Seconds since 1970 that files in archives carry.
    epoch: i64,
}

impl Making<'_> {
    /// A Cargo command whose binaries hold no path of this machine. It has a target directory of its own: other flags
    /// would have everything compiled again.
    fn cargo(&self, arguments: &[&str]) -> Result<Command, String> {
        let mut command = self.workspace.cargo(arguments);
        command.env("CARGO_TARGET_DIR", self.target());
        reproducible::without_paths(self.workspace, self.epoch, &mut command)?;
        Ok(command)
    }

    fn target(&self) -> PathBuf {
        self.workspace.scratch("release-target")
    }

    /// Copies a file into the release.
    fn add(&self, file: &Path) -> Result<(), String> {
        let name = file.file_name().ok_or("name a file of the release")?;
        fs::copy(file, self.out.join(name)).map(drop).map_err(|error| format!("copy {}: {error}", file.display()))
    }
}

/// Makes the release; `Ok(true)` if no part was left out.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let chosen = choose(&arguments.only)?;
    let out = arguments.out.clone().unwrap_or_else(|| workspace.target.join("release-files"));
    let out = std::path::absolute(out).map_err(|error| format!("find the folder of the release: {error}"))?;
    make_anew(&out)?;
    let making = Making { workspace, out: &out, epoch: reproducible::epoch(workspace)? };
    let mut left_out = Vec::new();
    for part in chosen {
        println!("begin      {}", part.name);
        if let Err(why) = (part.make)(&making) {
            println!("left out   {}: failed to {why}", part.name);
            left_out.push(part.name);
        }
    }
    bill::write(&making)?;
    let sums = checksums(&out)?;
    print!("{sums}");
    println!(
        "{} files in {}; left out: {}",
        sums.lines().count(),
        out.display(),
        if left_out.is_empty() { "nothing".to_owned() } else { left_out.join(", ") }
    );
    Ok(left_out.is_empty())
}

/// Empties the folder of an earlier release, or makes a new one. A folder with anything else stays as it is.
fn make_anew(out: &Path) -> Result<(), String> {
    let is_ours = out.join(CHECKSUMS).is_file() || fs::read_dir(out).is_ok_and(|mut files| files.next().is_none());
    if out.exists() && !is_ours {
        return Err(format!("use {}: it holds something else than a release; choose a new folder", out.display()));
    }
    let _ = fs::remove_dir_all(out);
    fs::create_dir_all(out).map_err(|error| format!("create {}: {error}", out.display()))?;
    // Written first, so that the next release recognizes the folder even if this one is interrupted.
    fs::write(out.join(CHECKSUMS), "").map_err(|error| format!("write {CHECKSUMS}: {error}"))
}

fn choose(only: &[String]) -> Result<Vec<&'static Part>, String> {
    if let Some(unknown) = only.iter().find(|name| PARTS.iter().all(|part| part.name != name.as_str())) {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("find a part named {unknown}; the parts are {}", names.join(", ")));
    }
    Ok(PARTS.iter().filter(|part| only.is_empty() || only.iter().any(|name| name == part.name)).collect())
}

/// Writes the checksums of all files, in the order of their names.
fn checksums(out: &Path) -> Result<String, String> {
    let _ = fs::remove_file(out.join(CHECKSUMS));
    let mut shell = Command::new("sh");
    shell.args(["-ec", "LC_ALL=C; export LC_ALL; sha256sum -- *"]).current_dir(out);
    let sums = library::run(&mut shell)?;
    fs::write(out.join(CHECKSUMS), &sums).map_err(|error| format!("write {CHECKSUMS}: {error}"))?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parts_are_chosen() {
        assert_eq!(choose(&[]).unwrap().len(), PARTS.len());
        assert_eq!(choose(&["debian".to_owned()]).unwrap()[0].name, "debian");
        assert!(choose(&["debain".to_owned()]).is_err_and(|why| why.contains("debain") && why.contains("wheels")));
    }

    #[test]
    fn only_a_release_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        make_anew(&out).unwrap();
        fs::write(out.join("half.crate"), "").unwrap();
        make_anew(&out).expect("that of a release that was ended in the middle");
        assert!(!out.join("half.crate").exists());
        fs::remove_file(out.join(CHECKSUMS)).unwrap();
        make_anew(&out).expect("an empty one");
        fs::remove_file(out.join(CHECKSUMS)).unwrap();
        fs::write(out.join("thesis.txt"), "").unwrap();
        assert!(make_anew(&out).is_err_and(|why| why.contains("something else")) && out.join("thesis.txt").is_file());
    }

    #[test]
    fn checksums_are_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "x").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        fs::write(folder.path().join(CHECKSUMS), "").unwrap();
        let sums = checksums(folder.path()).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert!(sums.starts_with(&format!("{empty}  a\n")) && sums.lines().count() == 2, "{sums}");
        assert_eq!(fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap(), sums);
    }
}
