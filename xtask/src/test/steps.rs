//! The table of all checks: name, description, requirements, time limit, and how to run it.
//!
//! Cheap checks come first; those that need what setup brings come after it, and those that need the release build after that. The peers have
//! their own step: their dependencies are heavy, and unified features would change the builds of the other steps.

use super::needs::Need;
use super::{
    Context, aarch64, book, cargo_tests, clients, crates, debian, examples, html, python, readme, shapes, windows,
};
use crate::tally::Tally;
use crate::toolchain::{AARCH64, MUSL, WINDOWS};
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
    /// A function, which gets the step's name for its reports. If it fails, it is called once more.
    Call(fn(&Context, &str) -> Tally),
    /// The same for cases of `cargo test`: the function tries those that failed again itself, one by one.
    Cases(fn(&Context, &str) -> Tally),
}

/// The step that builds the command.
pub(crate) const COMMAND: &str = "command";

/// Whether the step runs the built command.
pub(crate) fn runs_command(step: &str) -> bool {
    matches!(step, "gen" | "html" | "book" | "install" | "debian")
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
        limit_s: 600,
        run: Run::Cargo {
            arguments: &["doc", "--workspace", "--exclude", "peers", "--no-deps"],
            environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
        },
    },
    Step {
        name: "build",
        about: "the tests are built",
        needs: &[],
        limit_s: 1200,
        run: Run::Cargo { arguments: &["test", "--workspace", "--exclude", "peers", "--no-run"], environment: &[] },
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
        about: "compiler and Clippy warnings of everything except the peers",
        needs: &[Need::Component("clippy", "clippy")],
        limit_s: 1080,
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
        name: "tests",
        about: "unit, integration and documentation tests",
        needs: &[],
        limit_s: 1680,
        run: Run::Cases(cargo_tests::run),
    },
    Step {
        name: "unchecked",
        about: "messages of the executive without parameter checks",
        needs: &[],
        limit_s: 600,
        run: Run::Cases(cargo_tests::run_unchecked),
    },
    Step {
        name: "aarch64",
        about: "the crates pass the type check for aarch64-unknown-linux-gnu",
        needs: &[Need::Target(AARCH64)],
        limit_s: 480,
        run: Run::Call(aarch64::check),
    },
    Step {
        name: "qemu",
        about: "the tests of machine and time on aarch64, emulated",
        needs: &[
            Need::Target(AARCH64),
            Need::Packaged(aarch64::LINKER, "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
            Need::Packaged(aarch64::EMULATOR, "qemu-user"),
        ],
        limit_s: 480,
        run: Run::Call(aarch64::run),
    },
    Step {
        name: "windows",
        about: "the command and the library for Windows, under Wine",
        needs: &[Need::Target(WINDOWS), Need::Packaged(windows::LINKER, "gcc-mingw-w64-x86-64-win32"), Need::Wine],
        limit_s: 960,
        run: Run::Call(windows::check),
    },
    Step {
        name: COMMAND,
        about: "the release build of the command",
        needs: &[],
        // It gets the CPU time that the tests leave.
        limit_s: 1560,
        run: Run::Cargo { arguments: &["build", "--release", "-p", "hairspring-cli"], environment: &[] },
    },
    Step {
        name: "gen",
        about: "generated files are current",
        needs: &[],
        limit_s: 240,
        run: Run::Call(|context, name| {
            r#gen::check(context.workspace, name, &context.workspace.release_binary("hairspring"))
        }),
    },
    Step {
        name: "html",
        about: "the HTML sheet in a browser: no messages, no requests, all plots",
        needs: &[Need::Chromium],
        limit_s: 480,
        run: Run::Call(html::check),
    },
    Step {
        name: "readme",
        about: "each command in README.md runs",
        needs: &[],
        limit_s: 840,
        run: Run::Call(readme::run),
    },
    Step {
        name: "book",
        about: "the book builds without warnings, its links are valid, its commands run",
        needs: &[Need::Book],
        limit_s: 600,
        run: Run::Call(book::run),
    },
    Step {
        name: "crates",
        about: "each crate can be packed for a registry, with its papers and all files that it includes",
        needs: &[],
        limit_s: 120,
        run: Run::Call(crates::check),
    },
    Step {
        name: "static",
        about: "the command passes the type check for Linux with musl",
        needs: &[Need::Target(MUSL), Need::Packaged("musl-gcc", "musl-tools")],
        limit_s: 480,
        run: Run::Cargo {
            arguments: &["check", "--locked", "-p", "hairspring-cli", "--target", MUSL],
            environment: &[],
        },
    },
    Step {
        name: "examples",
        about: "each example builds and runs to its end",
        needs: &[],
        limit_s: 600,
        run: Run::Call(examples::run),
    },
    Step {
        name: "c",
        about: "C and C++ programs with the installed library: examples, and a client that makes every mistake",
        needs: &[Need::Program("valgrind"), Need::Program("g++"), Need::Program("pkg-config")],
        limit_s: 840,
        run: Run::Call(clients::c),
    },
    Step {
        name: "tcl",
        about: "Tcl scripts with the installed package: examples, and its tests",
        needs: &[Need::Tcl],
        limit_s: 600,
        run: Run::Call(clients::tcl),
    },
    Step {
        name: "install",
        about: "the installation is complete, and works in its place and for a foreign project",
        needs: &[Need::Tcl, Need::Program("cmake")],
        limit_s: 600,
        run: Run::Call(clients::install),
    },
    Step {
        name: "python",
        about: "the wheel of the Python package, in a fresh environment, passes its tests",
        needs: &[Need::Python],
        limit_s: 840,
        run: Run::Call(python::run),
    },
    Step {
        name: "shapes",
        about: "the examples of every language print the expected keys and values",
        needs: &[],
        limit_s: 600,
        run: Run::Call(shapes::run),
    },
    Step {
        name: "lab",
        about: "the drivers with the kernel's real ones, in a virtual machine",
        needs: &[Need::Lab],
        limit_s: 960,
        run: Run::Call(lab::check),
    },
    Step {
        name: "peers",
        about: "compiler and Clippy warnings of the peer adapters",
        needs: &[Need::Component("clippy", "clippy")],
        limit_s: 840,
        run: Run::Cargo {
            arguments: &["clippy", "-p", "peers", "--all-targets", "--", "-D", "warnings"],
            environment: &[],
        },
    },
    Step {
        name: "debian",
        about: "the Debian packages: lintian, and installed, used and purged in a clean system",
        needs: &[
            Need::Tcl,
            Need::Python,
            Need::Packaged("dpkg-shlibdeps", "dpkg-dev"),
            Need::Program("lintian"),
            Need::CleanDebian,
        ],
        limit_s: 420,
        run: Run::Call(debian::check),
    },
];
