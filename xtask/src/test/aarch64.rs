//! aarch64 Linux: `cargo check` of the product's crates for that target, and the tests of machine and time under QEMU.

use super::{Context, cargo_tests};
use crate::tally::Tally;
use crate::toolchain::{self, AARCH64};

const CRATES: &[&str] = &[
    "hairspring-describe",
    "hairspring-file",
    "hairspring-machine",
    "hairspring-time",
    "hairspring-exec-core",
    "hairspring-exec",
    "hairspring-ring",
    "hairspring-tap",
    "hairspring-source",
    "hairspring-store",
    "hairspring-recording",
    "hairspring-record",
    "hairspring-play",
    "hairspring-plan",
    "hairspring-device",
    "hairspring-station",
    "hairspring-sheet",
    "hairspring-suite",
    "hairspring-cli",
    "hairspring-c",
];

/// The crates whose tests run: those that depend on the processor, and those above them.
const RUN: &[&str] = &["hairspring-machine", "hairspring-time"];

pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";
pub(crate) const EMULATOR: &str = "qemu-aarch64";
/// The folder of the target's C library in Debian's cross packages.
const C_LIBRARY: &str = "/usr/aarch64-linux-gnu";

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let mut command = toolchain::cargo(context.workspace, &["check"], AARCH64);
    for package in CRATES {
        command.args(["-p", package]);
    }
    let ended = context.run(name, &mut command);
    if ended.succeeded() {
        Tally::pass()
    } else {
        Tally::fail(name, format!("cargo check --target {AARCH64}: {}", ended.how), ended.tail())
    }
}

/// Runs the integration tests of the crates above under QEMU's user emulation. The emulation has no rseq, so there is
/// no sentinel, and the tests that need one are skipped.
pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let mut command = toolchain::cargo(context.workspace, &["test", "--no-fail-fast", "--test", "it"], AARCH64);
    for package in RUN {
        command.args(["-p", package]);
    }
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {C_LIBRARY}"));
    cargo_tests::count(name, &context.run(name, &mut command))
}
