//! The setup step: lists what the other steps lack and installs it.
//!
//! Several things can be missing. Components of the toolchain and its library for musl come from rustup. Chromium, programs that single tests use, and
//! linkers and emulators for other systems come from the Debian archive, which needs root. The compiler for aarch64 and Windows,
//! with the sources of its standard library, is downloaded from the Debian archive and unpacked under the target directory. The
//! download uses package lists of its own with arm64 among their architectures, so that the system's configuration does not change. Versions
//! are looked up at run time. Packages for Python come from PyPI into a virtual environment under the target directory.
//! `lab/supplies.rs` fetches the supplies of the lab.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::needs::{self, FOR_SINGLE_TESTS, Need};
use super::steps::{Run, STEPS, Step};
use super::{Context, aarch64, debian, windows};
use crate::apt::{Apt, Must};
use crate::lab::kind::Kind;
use crate::lab::supplies;
use crate::release::parts::STATIC;
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) const STEP: Step = Step {
    name: "setup",
    about: "what the steps need is installed",
    needs: &[],
    limit_s: 420,
    run: Run::Call(install_all),
};

fn install_all(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    let mut seen = BTreeSet::new();
    for need in STEPS.iter().flat_map(|step| step.needs).chain(FOR_SINGLE_TESTS) {
        if !seen.insert(format!("{need:?}")) {
            continue;
        }
        let Some(missing) = need.missing(context.workspace) else { continue };
        println!("       missing: {missing}");
        if !missing.installable {
            // Setup cannot install it here; the steps that need it say so.
            continue;
        }
        let outcome = match need {
            Need::Component(component, _) => from_rustup(context, "component", component),
            Need::Chromium => from_debian(context, &["chromium", "fonts-dejavu-core"]),
            Need::Aarch64 => compiler_from_debian(context.workspace, &mut |command| must(context, command)),
            Need::Aarch64Run => from_debian(context, &aarch64::DEBIAN),
            Need::Windows => {
                from_debian(context, &windows::DEBIAN).and_then(|()| match windows::has_sources(context.workspace) {
                    true => Ok(()),
                    false => compiler_from_debian(context.workspace, &mut |command| must(context, command)),
                })
            }
            Need::Musl => from_debian(context, &["musl-tools"]).and_then(|()| from_rustup(context, "target", STATIC)),
            Need::Python | Need::Book => python_from_pip(context),
            Need::Lab => supplies::install(context.workspace, Kind::Pc, &mut |command| must(context, command)),
            Need::Program(name) | Need::Packaged(_, name) => from_debian(context, &[name]),
            Need::Tcl => from_debian(context, &needs::TCL_PACKAGES),
            Need::CleanDebian => from_debian(context, &["mmdebstrap"])
                .and_then(|()| must(context, &mut debian::make_base(context.workspace)?).map(drop)),
        };
        let still = outcome.err().or_else(|| need.missing(context.workspace).map(|missing| missing.to_string()));
        if let Some(why) = still {
            tally.failure(&format!("{name} {need:?}"), why, "");
        }
    }
    if tally.succeeded() {
        tally.passed += 1;
    }
    tally
}

fn from_rustup(context: &Context, kind: &str, name: &str) -> Result<(), String> {
    must(context, Command::new("rustup").args([kind, "add", name]).current_dir(&context.workspace.root)).map(drop)
}

fn from_debian(context: &Context, packages: &[&str]) -> Result<(), String> {
    must(context, Command::new("apt-get").args(["--quiet", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["--quiet", "install", "-y", "--no-install-recommends"]).args(packages);
    must(context, install.env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}

fn python_from_pip(context: &Context) -> Result<(), String> {
    let folder = context.workspace.scratch("python");
    must(context, Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(needs::python(context.workspace));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(context.workspace.root.join(needs::PYTHON_REQUIREMENTS));
    must(context, &mut install).map(drop)
}

/// Installs the compiler for aarch64, which also builds for the lab's board and for Windows.
pub(crate) fn compiler_from_debian(workspace: &Workspace, must: Must<'_>) -> Result<(), String> {
    let folder = workspace.scratch("aarch64");
    let root = aarch64::unpacked_root(workspace);
    let native = must(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let apt = Apt::new(&folder, &native)?;
    let mut run = |program: &str, arguments: &[&str]| apt.run(program, arguments, must);
    run("apt-get", &["--quiet", "update"])?;
    let version = version(&run("apt-cache", &["show", "--no-all-versions", &format!("rustc-web:{native}")])?)
        .ok_or("find rustc-web in the Debian archive")?;
    // The compiler's own packages, even if the system has a copy installed …
    let closure = run("apt-cache", &[CLOSURE, &[&format!("rustc-web:{native}")]].concat())?;
    let mut packages = compiler_packages(&closure, &native, &version);
    // … and the other packages that this system lacks for it.
    let planned =
        run("apt-get", &["--simulate", "install", "--no-install-recommends", &format!("rustc-web:{native}")])?;
    for package in to_install(&planned) {
        let pinned = packages.iter().any(|known| known.split([':', '=']).next() == Some(package.as_str()));
        if !pinned {
            packages.insert(format!("{package}:{native}"));
        }
    }
    packages.insert(format!("libstd-rust-web-dev:arm64={version}"));
    packages.insert(format!("{SOURCES}={version}"));
    let list: Vec<&str> = packages.iter().map(String::as_str).collect();
    println!("       downloading {}", list.join(" "));
    run("apt-get", &[&["--quiet", "download"], list.as_slice()].concat())?;
    // Unpacked into a temporary folder and renamed, so that the compiler is never incomplete.
    let partial = folder.join("partial");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(|error| format!("create {}: {error}", partial.display()))?;
    for package in apt.downloaded()? {
        unpack(&package, &partial, must)?;
    }
    let _ = fs::remove_dir_all(&root);
    fs::rename(&partial, &root).map_err(|error| format!("rename {}: {error}", partial.display()))?;
    let _ = fs::remove_dir_all(&apt.downloads);
    Ok(())
}

/// Unpacks one package; of the compiler's sources (340 MB) only the standard library.
fn unpack(package: &Path, into: &Path, must: Must<'_>) -> Result<(), String> {
    if !package.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SOURCES)) {
        return must(Command::new("dpkg").arg("-x").arg(package).arg(into)).map(drop);
    }
    let archive = into.with_extension("tar");
    let file = fs::File::create(&archive).map_err(|error| format!("create {}: {error}", archive.display()))?;
    let opened = Command::new("dpkg").arg("--fsys-tarfile").arg(package).stdout(file).status();
    if !opened.is_ok_and(|status| status.success()) {
        return Err(format!("open {}", package.display()));
    }
    let mut extract = Command::new("tar");
    extract.arg("-xf").arg(&archive).arg("-C").arg(into).arg("--wildcards");
    let extracted = must(extract.args(["./usr/lib/rustlib/src", "./usr/src/*/library"])).map(drop);
    let _ = fs::remove_file(&archive);
    extracted
}

/// The package with the sources of the standard library.
const SOURCES: &str = "rust-web-src";

const CLOSURE: &[&str] = &[
    "depends",
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];

/// Runs a command that must succeed and returns its output.
fn must(context: &Context, command: &mut Command) -> Result<String, String> {
    let said = std::iter::once(command.get_program()).chain(command.get_args().filter(|word| *word != "-o"));
    let words: Vec<String> = said.map(|word| word.to_string_lossy().into_owned()).collect();
    let told: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.contains("::")).collect();
    let label = format!("setup {}", told.join(" "));
    let ended = context.run(&label, command);
    if ended.succeeded() { Ok(ended.output) } else { Err(format!("{label}: {}\n{}", ended.how, ended.tail())) }
}

/// The `Version:` field of a package's description.
fn version(description: &str) -> Option<String> {
    description.lines().find_map(|line| line.strip_prefix("Version: ")).map(|version| version.trim().to_owned())
}

/// The compiler's own packages in apt's list of all dependencies, pinned to its version if they share it.
fn compiler_packages(closure: &str, native: &str, version: &str) -> BTreeSet<String> {
    let names = closure.lines().filter(|line| !line.starts_with([' ', '|', '<']));
    let names = names.map(|name| name.split(':').next().unwrap_or(name).trim());
    names
        .filter_map(|name| {
            if name == "rustc-web" || name.starts_with("libstd-rust-web") {
                Some(format!("{name}:{native}={version}"))
            } else {
                name.starts_with("libllvm").then(|| format!("{name}:{native}"))
            }
        })
        .collect()
}

/// The packages that `apt-get --simulate install` would add.
fn to_install(planned: &str) -> Vec<String> {
    let lines = planned.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split([' ', ':']).next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_own_packages_share_its_version() {
        let closure = "rustc-web\n  Depends: libc6\nlibc6\nlibstd-rust-web-1.96\nlibllvm22\n<virtual>\n";
        let packages = compiler_packages(closure, "amd64", "1.96-2");
        let expected = ["libllvm22:amd64", "libstd-rust-web-1.96:amd64=1.96-2", "rustc-web:amd64=1.96-2"];
        assert_eq!(packages.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_apt_plans_and_shows_is_read() {
        let planned = "Reading…\nInst libz3-4 (4.8 Debian:12 [amd64])\nInst gcc:amd64 (12)\nConf libz3-4 (4.8)\n";
        assert_eq!(to_install(planned), ["libz3-4", "gcc"]);
        assert_eq!(version("Package: rustc-web\nVersion: 1.96.0+dfsg1-1\n").as_deref(), Some("1.96.0+dfsg1-1"));
        assert_eq!(version("N: No packages found\n"), None);
    }
}
