//! The table of all checks: name, tier, description, requirements, time limit, and how to run it.
//!
//! The first tier checks what users get, with one unoptimised build: the step `build` compiles the command, the
//! libraries for C and Python and the examples in one call of Cargo, so that they share every crate with the tests. The
//! second tier has the other builds (optimised, instrumented, for other systems) and everything that needs a large
//! installation. The peers have their own step: their dependencies are heavy, and unified features would change the
//! builds of the other steps.

use super::needs::{CBINDGEN, FOR_SINGLE_TESTS, Need, SYSTEMD_ANALYZE};
use super::{
    Context, aarch64, book, cargo_tests, clients, crates, debian, examples, html, python, readme, shapes, windows,
};
use crate::tally::Tally;
use crate::toolchain::{AARCH64, MUSL, WINDOWS};
use crate::{r#gen, lab, lint};

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) tier: Tier,
    pub(crate) about: &'static str,
    /// Without these the step is skipped.
    pub(crate) needs: &'static [Need],
    /// Without these single checks of the step are skipped.
    pub(crate) uses: &'static [Need],
    /// The step that builds what this one runs.
    pub(crate) built_by: Option<&'static str>,
    pub(crate) limit_s: u64,
    pub(crate) run: Run,
}

/// Which run of the checks has a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// What users get, in minutes: the command of README.md.
    Product,
    /// Everything else: `--rest`, and with the first tier `--all`.
    Rest,
}

impl Tier {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Tier::Product => "product",
            Tier::Rest => "rest",
        }
    }
}

pub(crate) enum Run {
    /// One run of Cargo that passes when it exits 0.
    Cargo { arguments: &'static [&'static str], environment: &'static [(&'static str, &'static str)] },
    /// A function, which gets the step's name for its reports. If it fails, it is called once more.
    Call(fn(&Context, &str) -> Tally),
    /// The same without the second call: nothing of it depends on time, or the function tries single cases again
    /// itself.
    Once(fn(&Context, &str) -> Tally),
}

/// The step that builds the product without optimisation.
pub(crate) const BUILD: &str = "build";
/// The step that builds the command as it ships.
pub(crate) const COMMAND: &str = "command";

/// The arguments of Cargo that build the command, the libraries and the examples with the profile and the features of
/// the tests.
pub(crate) const PRODUCT: [&str; 9] =
    ["build", "--profile", "test", "--workspace", "--exclude", "peers", "--lib", "--bins", "--examples"];

/// The fields that most steps share.
const STEP: Step = Step {
    name: "",
    tier: Tier::Rest,
    about: "",
    needs: &[],
    uses: &[],
    built_by: None,
    limit_s: 600,
    run: Run::Cargo { arguments: &[], environment: &[] },
};

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "lint",
        tier: Tier::Product,
        about: "the invariants of ARCHITECTURE.md",
        limit_s: 60,
        run: Run::Once(|context, name| lint::check(context.workspace, name)),
        ..STEP
    },
    Step {
        name: "fmt",
        tier: Tier::Product,
        about: "the layout of all Rust files",
        needs: &[Need::Component("rustfmt", "fmt")],
        limit_s: 60,
        run: Run::Cargo { arguments: &["fmt", "--all", "--check"], environment: &[] },
        ..STEP
    },
    Step {
        name: "clippy",
        tier: Tier::Product,
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
        ..STEP
    },
    Step {
        name: BUILD,
        tier: Tier::Product,
        about: "the command, the libraries for C and Python and the examples, with the crates of the tests",
        limit_s: 1200,
        run: Run::Cargo { arguments: &PRODUCT, environment: &[] },
        ..STEP
    },
    Step {
        name: "tests",
        tier: Tier::Product,
        about: "unit, integration and documentation tests",
        uses: FOR_SINGLE_TESTS,
        limit_s: 2700,
        run: Run::Once(cargo_tests::run),
        ..STEP
    },
    Step {
        name: "gen",
        tier: Tier::Product,
        about: "generated files are current",
        uses: &[CBINDGEN],
        built_by: Some(BUILD),
        limit_s: 240,
        run: Run::Call(|context, name| r#gen::check(context.workspace, name, &context.workspace.built("hairspring"))),
        ..STEP
    },
    Step {
        name: "examples",
        tier: Tier::Product,
        about: "each example in Rust runs to its end",
        built_by: Some(BUILD),
        run: Run::Call(examples::run),
        ..STEP
    },
    Step {
        name: "python",
        tier: Tier::Product,
        about: "the Python package in a fresh environment passes its tests",
        needs: &[Need::Python],
        built_by: Some(BUILD),
        limit_s: 1500,
        run: Run::Call(python::run),
        ..STEP
    },
    Step {
        name: "c",
        tier: Tier::Product,
        about: "C and C++ programs with the installed library: examples, and a client that makes every mistake",
        needs: &[Need::Program("g++"), Need::Program("pkg-config")],
        built_by: Some(BUILD),
        limit_s: 840,
        run: Run::Call(clients::c),
        ..STEP
    },
    Step {
        name: "shapes",
        tier: Tier::Product,
        about: "the examples in Rust and Python print the expected keys and values",
        built_by: Some(BUILD),
        run: Run::Call(shapes::run),
        ..STEP
    },
    Step {
        name: "readme",
        tier: Tier::Product,
        about: "each command in README.md runs, except installations",
        built_by: Some(BUILD),
        limit_s: 840,
        run: Run::Call(readme::run),
        ..STEP
    },
    Step {
        name: "doc",
        about: "the documentation builds without warnings",
        run: Run::Cargo {
            arguments: &["doc", "--workspace", "--exclude", "peers", "--no-deps"],
            environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
        },
        ..STEP
    },
    Step {
        name: "unchecked",
        about: "messages of the executive without parameter checks",
        run: Run::Once(cargo_tests::run_unchecked),
        ..STEP
    },
    Step {
        name: "aarch64",
        about: "the crates pass the type check for aarch64-unknown-linux-gnu",
        needs: &[Need::Target(AARCH64)],
        limit_s: 480,
        run: Run::Call(aarch64::check),
        ..STEP
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
        ..STEP
    },
    Step {
        name: "windows",
        about: "the command and the library for Windows, under Wine",
        needs: &[Need::Target(WINDOWS), Need::Packaged(windows::LINKER, "gcc-mingw-w64-x86-64-win32"), Need::Wine],
        limit_s: 960,
        run: Run::Call(windows::check),
        ..STEP
    },
    Step {
        name: COMMAND,
        about: "the release build of the command",
        // It gets the CPU time that the tests leave.
        limit_s: 1560,
        run: Run::Cargo { arguments: &["build", "--release", "-p", "hairspring-cli"], environment: &[] },
        ..STEP
    },
    Step {
        name: "html",
        about: "the HTML sheet in a browser: no messages, no requests, all plots",
        needs: &[Need::Chromium],
        built_by: Some(COMMAND),
        limit_s: 480,
        run: Run::Call(html::check),
        ..STEP
    },
    Step {
        name: "source",
        about: "README.md's installation from source, and its other commands with what it installed",
        limit_s: 840,
        run: Run::Call(readme::run_installed),
        ..STEP
    },
    Step {
        name: "book",
        about: "the book builds without warnings, its links are valid, its commands run",
        needs: &[Need::Book],
        built_by: Some(COMMAND),
        run: Run::Call(book::run),
        ..STEP
    },
    Step {
        name: "crates",
        about: "each crate can be packed for a registry, with its papers and all files that it includes",
        limit_s: 120,
        run: Run::Call(crates::check),
        ..STEP
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
        ..STEP
    },
    Step {
        name: "optimised",
        about: "the step c with the library as it ships, and under AddressSanitizer and valgrind",
        needs: &[Need::Program("valgrind"), Need::Program("g++"), Need::Program("pkg-config")],
        uses: &[super::interface::ABIDIFF],
        built_by: Some(COMMAND),
        limit_s: 840,
        run: Run::Call(clients::optimised_c),
        ..STEP
    },
    Step {
        name: "tcl",
        about: "Tcl scripts with the installed package: examples, and its tests",
        needs: &[Need::Tcl],
        run: Run::Call(clients::tcl),
        ..STEP
    },
    Step {
        name: "install",
        about: "the installation is complete, and works in its place and for a foreign project",
        needs: &[Need::Tcl, Need::Program("cmake")],
        built_by: Some(COMMAND),
        run: Run::Call(clients::install),
        ..STEP
    },
    Step {
        name: "wheel",
        about: "the wheel of the Python package as it ships, in a fresh environment, passes its tests",
        needs: &[Need::Python],
        built_by: Some(COMMAND),
        limit_s: 840,
        run: Run::Call(python::run_wheel),
        ..STEP
    },
    Step {
        name: "lab",
        about: "the drivers with the kernel's real ones, in a virtual machine",
        needs: &[Need::Lab],
        limit_s: 960,
        run: Run::Call(lab::check),
        ..STEP
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
        ..STEP
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
        uses: &[SYSTEMD_ANALYZE],
        built_by: Some(COMMAND),
        limit_s: 420,
        run: Run::Call(debian::check),
        ..STEP
    },
];
