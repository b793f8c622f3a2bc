//! The crates as a registry gets them: `cargo package` of all that can be published, and what is in the packages.
//!
//! It does not compile the packages, which takes minutes: `cargo xtask prove --only crates` does. What usually breaks a
//! package is a file that its sources include and that lies outside its folder, and this the step finds.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::Context;
use crate::library;
use crate::tally::Tally;
use crate::workspace::Package;

/// What each package holds beside its sources.
const PAPERS: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];
const INCLUDING: [&str; 3] = ["include_str!(\"", "include_bytes!(\"", "include!(\""];

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    let published: Vec<&Package> = workspace.packages.iter().filter(|package| package.is_published).collect();
    let mut command = workspace.cargo(&["package", "--no-verify", "--allow-dirty", "--locked", "--offline"]);
    for package in &published {
        command.args(["-p", &package.name]);
    }
    let packed = context.run(name, &mut command);
    if !packed.succeeded() {
        return Tally::fail(name, format!("cargo package: {}", packed.how), packed.tail());
    }
    let mut tally = Tally::default();
    // Cargo warns of what a manifest lacks.
    match packed.output.lines().find(|line| line.starts_with("warning: manifest")) {
        Some(warning) => tally.failure(name, warning, packed.tail()),
        None => tally.passed += 1,
    }
    let folder = workspace.scratch("crates");
    let _ = fs::remove_dir_all(&folder);
    for package in published {
        let file = format!("{}-{}", package.name, library::version());
        let archive = workspace.target.join("package").join(format!("{file}.crate"));
        match unpack(&archive, &folder).and_then(|()| is_whole(&folder.join(&file))) {
            Ok(()) => tally.passed += 1,
            Err(why) => tally.failure(&format!("{name} {}", package.name), why, ""),
        }
    }
    tally
}

fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    library::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder)).map(drop)
}

/// Whether a package has its papers and every file that its sources include.
fn is_whole(package: &Path) -> Result<(), String> {
    if let Some(absent) = PAPERS.into_iter().find(|paper| !package.join(paper).is_file()) {
        return Err(format!("{absent} is not in the package"));
    }
    let sources = sources(&package.join("src"))?;
    if sources.is_empty() {
        return Err("there is no source in the package".to_owned());
    }
    for source in sources {
        let text = fs::read_to_string(&source).map_err(|error| format!("read {}: {error}", source.display()))?;
        for included in included(&text) {
            let file = flat(&source.parent().unwrap_or(package).join(included));
            if !(file.starts_with(package) && file.is_file()) {
                return Err(format!("{} includes {included}, which is not in the package", source.display()));
            }
        }
    }
    Ok(())
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let failed = |error| format!("list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The files that code includes; those of unit tests and of examples in comments are not needed to build the crate.
fn included(source: &str) -> Vec<&str> {
    let product = source.split("#[cfg(test)]").next().unwrap_or(source);
    let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let starts = lines.flat_map(|line| INCLUDING.iter().filter_map(move |start| line.split_once(start)));
    starts.filter_map(|(_, rest)| rest.split('"').next()).collect()
}

/// A path without `..`.
fn flat(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        if part == Component::ParentDir {
            flat.pop();
        } else {
            flat.push(part);
        }
        flat
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_of_the_package_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("noun-0.1.0");
        fs::create_dir_all(package.join("src/inner")).unwrap();
        for paper in PAPERS {
            fs::write(package.join(paper), "").unwrap();
        }
        let check = |code: &str, whole: bool| {
            fs::write(package.join("src/inner/a.rs"), code).unwrap();
            let said = is_whole(&package);
            assert_eq!(said.is_ok(), whole, "{code}: {said:?}");
        };
        fs::write(package.join("data.json"), "").unwrap();
        fs::write(folder.path().join("far.json"), "").unwrap();
        check("const A: &str = include_str!(\"../../data.json\");\n", true);
        check("const A: &str = include_str!(\"../../../far.json\");\n", false);
        check("const A: &[u8] = include_bytes!(\"absent.bin\");\n", false);
        check("//! include_str!(\"absent.json\")\n#[cfg(test)]\nmod tests { include!(\"absent.rs\") }\n", true);
        fs::remove_file(package.join("LICENSE-MIT")).unwrap();
        check("", false);
    }
}
