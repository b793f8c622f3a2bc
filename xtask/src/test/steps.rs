//! The table of all checks: name, what it is, what it needs, how long it may take, how it runs.
//!
//! Cheap ones come first, so that a typo is told in seconds; what needs the release build comes after it. The
//! peers are checked by a step of their own: their dependencies are heavy, and united features would change what
//! the other steps build.

use super::needs::Need;
use super::{Context, aarch64, book, cargo_tests, clients, examples, html, python, readme, shapes, windows};
use crate::tally::Tally;
use crate::{r#gen, lab, lint};

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) limit_s: u64,
    pub(crate) run: Run,
}

pub(crate) enum Run {
    /// One run of Cargo that passes when it exits 0.
    Cargo { arguments: &'static [&'static str], environment: &'static [(&'static str, &'static str)] },
    /// Anything else; it gets the step's name for its reports.
    Call(fn(&Context, &str) -> Tally),
}

/// The step that builds the command.
pub(crate) const COMMAND: &str = "command";

/// True for a step that runs the built command.
pub(crate) fn runs_command(step: &str) -> bool {
    matches!(step, "gen" | "html" | "book" | "install")
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "lint",
        about: "the invariants of ARCHITECTURE.md",
        needs: &[],
        limit_s: 60,
        run: Run::Call(|context, name| lint::check(context.workspace, name)),
    },
    Step {
        name: "doc",
        about: "the documentation builds without warnings",
        needs: &[],
        limit_s: 300,
        run: Run::Cargo {
            arguments: &["doc", "--workspace", "--exclude", "peers", "--no-deps"],
            environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
        },
    },
    Step {
        name: "fmt",
        about: "the layout of all Rust files",
        needs: &[Need::Component("rustfmt", "fmt")],
        limit_s: 60,
        run: Run::Cargo { arguments: &["fmt", "--all", "--check"], environment: &[] },
    },
    Step {
        name: "clippy",
        about: "compiler and Clippy warnings of everything but the peers",
        needs: &[Need::Component("clippy", "clippy")],
        limit_s: 540,
        run: Run::Cargo {
            arguments: &[
                "clippy",
                "--workspace",
                "--exclude",
                "peers",
                "--all-targets",
                "--keep-going",
                "--",
                "-D",
                "warnings",
            ],
            environment: &[],
        },
    },
    Step {
        name: "build",
        about: "the tests are built",
        needs: &[],
        limit_s: 600,
        run: Run::Cargo { arguments: &["test", "--workspace", "--exclude", "peers", "--no-run"], environment: &[] },
    },
    Step {
        name: "tests",
        about: "unit, integration and documentation tests",
        needs: &[],
        limit_s: 840,
        run: Run::Call(cargo_tests::run),
    },
    Step {
        name: "unchecked",
        about: "messages of the executive without parameter checks",
        needs: &[],
        limit_s: 300,
        run: Run::Call(cargo_tests::run_unchecked),
    },
    Step {
        name: "aarch64",
        about: "the crates pass the type check for aarch64-unknown-linux-gnu",
        needs: &[Need::Aarch64],
        limit_s: 240,
        run: Run::Call(aarch64::check),
    },
    Step {
        name: "qemu",
        about: "the tests of machine and time on aarch64, emulated",
        needs: &[Need::Aarch64, Need::Aarch64Run],
        limit_s: 240,
        run: Run::Call(aarch64::run),
    },
    Step {
        name: "windows",
        about: "the command and the library for Windows, under Wine",
        needs: &[Need::Windows],
        limit_s: 480,
        run: Run::Call(windows::check),
    },
    Step {
        name: COMMAND,
        about: "the release build of the command",
        needs: &[],
        // It has what the tests beside it leave.
        limit_s: 780,
        run: Run::Cargo { arguments: &["build", "--release", "-p", "hairspring-cli"], environment: &[] },
    },
    Step {
        name: "gen",
        about: "generated files are current",
        needs: &[],
        limit_s: 120,
        run: Run::Call(|context, name| r#gen::check(context.workspace, name)),
    },
    Step {
        name: "html",
        about: "the HTML sheet in a browser: no message, no request, its plots",
        needs: &[Need::Chromium],
        limit_s: 240,
        run: Run::Call(html::check),
    },
    Step {
        name: "readme",
        about: "each command in README.md runs",
        needs: &[],
        limit_s: 420,
        run: Run::Call(readme::run),
    },
    Step {
        name: "book",
        about: "the book builds without a warning, its links lead somewhere, its commands run",
        needs: &[Need::Book],
        limit_s: 300,
        run: Run::Call(book::run),
    },
    Step {
        name: "examples",
        about: "each example builds and runs to its end",
        needs: &[],
        limit_s: 300,
        run: Run::Call(examples::run),
    },
    Step {
        name: "c",
        about: "C and C++ programs on the installed library: examples, and a client that does everything wrong",
        needs: &[Need::Program("valgrind"), Need::Program("g++"), Need::Program("pkg-config")],
        limit_s: 420,
        run: Run::Call(clients::c),
    },
    Step {
        name: "tcl",
        about: "Tcl scripts on the installed package: examples, and its tests",
        needs: &[Need::Tcl],
        limit_s: 300,
        run: Run::Call(clients::tcl),
    },
    Step {
        name: "install",
        about: "what is installed is whole, and works from where it is",
        needs: &[Need::Tcl],
        limit_s: 300,
        run: Run::Call(clients::install),
    },
    Step {
        name: "python",
        about: "the wheel of the Python package, in a fresh environment, passes its tests",
        needs: &[Need::Python],
        limit_s: 420,
        run: Run::Call(python::run),
    },
    Step {
        name: "shapes",
        about: "the examples that every language has print what they are to print",
        needs: &[],
        limit_s: 300,
        run: Run::Call(shapes::run),
    },
    Step {
        name: "lab",
        about: "the drivers against the kernel's real ones, in a virtual machine",
        needs: &[Need::Lab],
        limit_s: 480,
        run: Run::Call(lab::check),
    },
    Step {
        name: "peers",
        about: "compiler and Clippy warnings of the peer adapters",
        needs: &[Need::Component("clippy", "clippy")],
        limit_s: 420,
        run: Run::Cargo {
            arguments: &["clippy", "-p", "peers", "--all-targets", "--", "-D", "warnings"],
            environment: &[],
        },
    },
];
