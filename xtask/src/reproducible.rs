//! Builds that come out the same everywhere: the time that files carry, and no path of this machine in a binary.

use std::process::Command;

use crate::library;
use crate::workspace::Workspace;

/// Seconds since 1970 that all made files carry: `SOURCE_DATE_EPOCH`, or the time of the last commit.
pub(crate) fn epoch(workspace: &Workspace) -> Result<i64, String> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = match given {
        Some(text) => text,
        None => library::run(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&workspace.root))
            .map_err(|why| format!("find the time of the sources ({why}); set SOURCE_DATE_EPOCH"))?,
    };
    text.trim().parse().map_err(|error| format!("read {:?} as seconds since 1970: {error}", text.trim()))
}

/// A time as mails and changelogs have it.
pub(crate) fn rfc_2822(epoch: i64) -> Result<String, String> {
    let time = jiff::Timestamp::from_second(epoch).map_err(|error| format!("read the time {epoch}: {error}"))?;
    Ok(time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
}

/// Sets for a build that paths of this machine are replaced in its binaries: of the checkout, of Cargo's and of the
/// compiler's folder. Files that it makes carry `epoch`.
pub(crate) fn without_paths(workspace: &Workspace, epoch: i64, command: &mut Command) -> Result<(), String> {
    let root = workspace.root.to_string_lossy().into_owned();
    let cargo = match std::env::var("CARGO_HOME") {
        Ok(folder) => folder,
        Err(_) => std::env::var("HOME").map_err(|_| "find Cargo's folder: set CARGO_HOME")? + "/.cargo",
    };
    let replaced =
        [(workspace.target.to_string_lossy().into_owned(), "target"), (root, "hairspring"), (cargo, "cargo")];
    // The last that matches counts for rustc, the last for gcc, too.
    let ordered = || replaced.iter().rev().filter(|(from, _)| !from.is_empty());
    let rust: Vec<String> = ordered().map(|(from, to)| format!("--remap-path-prefix={from}=/{to}")).collect();
    let c: Vec<String> = ordered().map(|(from, to)| format!("-ffile-prefix-map={from}=/{to}")).collect();
    command
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env("CFLAGS", c.join(" "))
        .env("SOURCE_DATE_EPOCH", epoch.to_string())
        .env("CARGO_INCREMENTAL", "0");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_changelogs_have_them() {
        assert_eq!(rfc_2822(1_700_000_000).as_deref(), Ok("Tue, 14 Nov 2023 22:13:20 +0000"));
    }

    /// Builds a small program in a folder of this name, and returns its bytes.
    fn built(folder: &std::path::Path, name: &str, is_remapped: bool) -> Vec<u8> {
        let root = folder.join(name);
        std::fs::create_dir_all(root.join("src")).unwrap();
        let manifest =
            "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\ndebug = \"full\"\n";
        std::fs::write(root.join("Cargo.toml"), manifest).unwrap();
        std::fs::write(root.join("src/main.rs"), "fn main() { println!(\"{}\", env!(\"CARGO_PKG_NAME\")); }\n")
            .unwrap();
        let workspace = Workspace { target: root.join("target"), root, packages: Vec::new() };
        let mut build = workspace.cargo(&["build", "--quiet", "--offline"]);
        build.env("CARGO_TARGET_DIR", &workspace.target);
        if is_remapped {
            without_paths(&workspace, 1_700_000_000, &mut build).unwrap();
        }
        library::run(&mut build).unwrap();
        std::fs::read(workspace.target.join("debug/small")).unwrap()
    }

    #[test]
    fn builds_in_two_folders_are_equal_byte_for_byte_only_without_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            built(folder.path(), "one", false) != built(folder.path(), "the other", false),
            "the test shows nothing"
        );
        let (one, other) = (built(folder.path(), "one", true), built(folder.path(), "the other", true));
        assert!(one == other, "{} and {} bytes differ", one.len(), other.len());
        let path = folder.path().to_string_lossy().into_owned();
        assert!(!String::from_utf8_lossy(&one).contains(&path));
    }
}
