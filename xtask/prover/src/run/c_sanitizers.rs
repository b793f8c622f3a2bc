//! The programs in C of the executive under the sanitizers: the program, the library and its standard library are
//! instrumented.
//!
//! ThreadSanitizer runs them on threads alone (`__SANITIZE_THREAD__` in `crates/c/tests/exec_check.h`): it keeps a
//! stack of calls for each thread, and a switch of stacks without notice to it upsets that. AddressSanitizer is
//! notified, and runs them on every back-end.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, json};

use super::cargo_test::{SANITIZERS, no_sanitizers, sanitized, target, target_folder, watch};
use crate::Verdict;

/// The programs under `crates/c/tests`; each prints how much it checked. Without `handler.c`: it has an allocator of
/// its own, and ThreadSanitizer delivers a signal later than the system does.
const PROGRAMS: [&str; 6] = ["exec", "objects", "scheduling", "deletion", "memory", "misfortune"];
/// The longest that a program may take, in seconds.
const LIMIT_S: &str = "300";
/// Libraries that the static library needs.
const LIBRARIES: [&str; 5] = ["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"];

pub(crate) fn prove() -> Verdict {
    if let Some(verdict) = no_sanitizers() {
        return verdict;
    }
    let mut all = Verdict { passed: true, figures: Map::new() };
    for sanitizer in SANITIZERS {
        let archive = built(sanitizer);
        for program in PROGRAMS {
            let checks = archive.as_ref().map_err(Clone::clone).and_then(|archive| run(sanitizer, archive, program));
            all.passed &= checks.is_ok();
            let figure = checks.map_or_else(|why| json!(why), |checks| json!(checks));
            all.figures.insert(format!("{sanitizer}: checks of {program}.c"), figure);
        }
    }
    all
}

/// Builds the static library under a sanitizer.
fn built(sanitizer: &str) -> Result<PathBuf, String> {
    let mut command = sanitized(sanitizer, "rustc");
    command.args(["-p", "hairspring-c", "--crate-type", "staticlib"]);
    if sanitizer == "address" {
        command.args(["--features", "hairspring-exec/sanitizer"]);
    }
    output(&mut command)?;
    Ok(Path::new(&target_folder(sanitizer)).join(target()).join("debug/libhairspring.a"))
}

/// The file of a sanitizer's runtime.
fn runtime(sanitizer: &str) -> Result<String, String> {
    let folder = output(Command::new("rustup").args(["run", "nightly", "rustc", "--print", "target-libdir"]))?;
    Ok(format!("{}/librustc-nightly_rt.{}san.a", folder.trim(), &sanitizer[..1]))
}

/// Compiles a program and runs it: how many checks held.
fn run(sanitizer: &str, archive: &Path, name: &str) -> Result<u64, String> {
    let (object, program) =
        (archive.with_file_name(format!("{name}.o")), archive.with_file_name(format!("{name}.out")));
    let compiler = || Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    let (checked, source) = (format!("-fsanitize={sanitizer}"), format!("crates/c/tests/{name}.c"));
    let compile = ["-std=c11", "-g", &checked, "-Icrates/c/include", "-c", &source, "-o"];
    output(compiler().args(compile).arg(&object))?;
    // The runtime of the Rust compiler, because that of the C compiler may be older than the library's code.
    let whole = ["-Wl,--whole-archive", &runtime(sanitizer)?, "-Wl,--no-whole-archive"];
    output(compiler().arg(&object).arg(archive).args(whole).args(LIBRARIES).arg("-o").arg(&program))?;
    let said = output(watch(Command::new("timeout").arg(LIMIT_S).arg(&program)))?;
    let checks = said.lines().find_map(|line| line.strip_prefix("checks ")?.parse().ok()).filter(|checks| *checks > 0);
    checks.ok_or_else(|| format!("{name} checked nothing"))
}

/// The output of a command; or its errors, from the first line that names the trouble.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("run {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let trouble = |line: &&str| ["WARNING", "ERROR", "FATAL", "error", "line "].iter().any(|word| line.contains(word));
    let about = told.lines().find(trouble).or_else(|| told.lines().last()).unwrap_or_default();
    Err(format!("{}: {about}", output.status))
}
