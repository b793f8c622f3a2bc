//! The wheels and the source distribution of the Python package.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Making, tools};
use crate::reproducible;
use crate::{library, toolchain, wheel};

/// A wheel of a release: the target, and the oldest platform that it runs on, as wheels name it.
struct Wheel {
    target: &'static str,
    platform: &'static str,
}

/// Zig's name of musl's C library. The loader of musl takes itself for it, under whatever name it is installed.
const MUSL: &str = "libc.so";

/// The first is the one for the Debian package, too.
const WHEELS: [Wheel; 4] = [
    Wheel { target: "x86_64-unknown-linux-gnu", platform: "manylinux_2_28" },
    Wheel { target: "aarch64-unknown-linux-gnu", platform: "manylinux_2_28" },
    Wheel { target: "x86_64-unknown-linux-musl", platform: "musllinux_1_2" },
    Wheel { target: "aarch64-unknown-linux-musl", platform: "musllinux_1_2" },
];

/// Makes all wheels that have a compiler, the source distribution, and checks them. Fails if a wheel is left out.
pub(super) fn all(making: &Making) -> Result<(), String> {
    let mut left_out = Vec::new();
    let mut files = Vec::new();
    for wheel in &WHEELS {
        println!("           {} for {}", wheel.platform, wheel.target);
        match build(making, wheel) {
            Ok(file) => files.push(file),
            Err(why) => left_out.push(format!("the wheel {} for {}: {why}", wheel.platform, wheel.target)),
        }
    }
    let folder = making.workspace.scratch("release-sdist");
    let mut pack = maturin(making, &["sdist"])?;
    files.push(wheel::build_one(pack.arg("--out").arg(&folder), &folder, "gz")?);
    check(making, &files)?;
    files.iter().try_for_each(|file| making.add(file))?;
    if left_out.is_empty() { Ok(()) } else { Err(format!("make all wheels: {}", left_out.join("; "))) }
}

/// The wheel for this machine's processor, with glibc.
pub(super) fn native(making: &Making) -> Result<PathBuf, String> {
    let native = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let wheel = WHEELS.iter().find(|wheel| wheel.target == native);
    build(making, wheel.ok_or_else(|| format!("find a wheel for {native}"))?)
}

/// Builds a wheel; linked against the C library of its platform by zig, which has all of them.
fn build(making: &Making, wheel: &Wheel) -> Result<PathBuf, String> {
    toolchain::has(making.workspace, wheel.target)?;
    let folder = making.workspace.scratch("release-wheels").join(wheel.target);
    let mut build = maturin(making, &["build", "--quiet", "--release", "--locked", "--zig", "--target", wheel.target])?;
    // Stripped: the debug information is five times as large as the rest, and holds the folder of the build.
    build.args(["--strip", "--compatibility", wheel.platform, "--out"]).arg(&folder);
    wheel::build_one(&mut build, &folder, "whl")
}

/// maturin, with the settings of a reproducible build.
fn maturin(making: &Making, arguments: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(tools::python(making.workspace)?);
    command.args(["-m", "maturin"]).args(arguments).args(["--manifest-path", wheel::MANIFEST]);
    command.current_dir(&making.workspace.root).env("CARGO_TARGET_DIR", making.target());
    command.env("PATH", tools::path(making.workspace));
    reproducible::without_paths(making.workspace, making.epoch, &mut command)?;
    Ok(command)
}

/// Checks for faults that an index or other systems would refuse: the texts, the interface of Python, the libraries and
/// their versions.
fn check(making: &Making, files: &[PathBuf]) -> Result<(), String> {
    let python = tools::python(making.workspace)?;
    library::run(Command::new(&python).args(["-m", "twine", "check", "--strict"]).args(files))?;
    // Without libraries of this system, which are not those of the wheel's platform.
    let no_libraries = making.workspace.scratch("release-no-libraries");
    std::fs::create_dir_all(&no_libraries).map_err(|error| format!("create {}: {error}", no_libraries.display()))?;
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "whl")) {
        library::run(Command::new(&python).args(["-m", "abi3audit", "--strict"]).arg(file))?;
        let mut audit = Command::new(&python);
        audit.args(["-m", "auditwheel", "show", "--json", "--ldpaths"]).arg(&no_libraries).arg(file);
        suits(file, &library::run(&mut audit)?)?;
    }
    Ok(())
}

/// Whether a wheel runs on the platform of its name, from auditwheel's output.
fn suits(file: &Path, said: &str) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let platform = WHEELS.iter().map(|wheel| wheel.platform).find(|platform| name.contains(*platform));
    let platform = platform.ok_or_else(|| format!("read the platform of {name}"))?;
    let said: Value =
        serde_json::from_str(said).map_err(|error| format!("read what auditwheel says of {name}: {error}"))?;
    // The platform by the versions of the symbols; the only other dependency may be the C library.
    let verdict = said["sym_tag"].as_str().unwrap_or_default();
    let foreign: Vec<&String> = said["external_libs"]
        .as_object()
        .ok_or_else(|| format!("find the libraries that {name} needs in what auditwheel says"))?
        .keys()
        .filter(|library| !(platform.starts_with("musl") && *library == MUSL))
        .collect();
    if !foreign.is_empty() {
        return Err(format!("make {name} for {platform}: auditwheel says that it needs {foreign:?}"));
    }
    let (family, newest) = platform.rsplit_once('_').unwrap_or((platform, "0"));
    let minor = verdict.strip_prefix(family).and_then(|rest| rest.strip_prefix('_')?.split('_').next());
    let number = |text: &str| text.parse::<u32>().ok();
    match (minor.and_then(number), number(newest)) {
        (Some(needs), Some(newest)) if needs <= newest => Ok(()),
        _ => Err(format!("make {name} for {platform}: auditwheel says that it needs {verdict}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_suits_its_platform_only_if_it_needs_nothing_newer() {
        let wheel = Path::new("hairspring-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl");
        let said = |tag: &str, libraries: &str| format!(r#"{{"sym_tag": "{tag}", "external_libs": {libraries}}}"#);
        assert_eq!(suits(wheel, &said("manylinux_2_17_x86_64", "{}")), Ok(()));
        assert_eq!(suits(wheel, &said("manylinux_2_28_x86_64", "{}")), Ok(()));
        let refused = suits(wheel, &said("manylinux_2_36_x86_64", "{}"));
        assert!(refused.is_err_and(|why| why.contains("needs manylinux_2_36_x86_64")));
        assert!(suits(wheel, &said("linux_x86_64", "{}")).is_err() && suits(wheel, "nothing").is_err());
        assert!(suits(wheel, &said("manylinux_2_28_x86_64", r#"{"libc.so": null}"#)).is_err());
        let musl = Path::new("hairspring-0.1.0-cp310-abi3-musllinux_1_2_x86_64.whl");
        // Symptom: no wheel for musl passed. Cause: auditwheel found a text of that name for the linker among the
        // libraries of this system.
        assert_eq!(suits(musl, &said("musllinux_1_2_x86_64", r#"{"libc.so": null}"#)), Ok(()));
        assert!(suits(musl, &said("musllinux_1_2_x86_64", r#"{"libc.so": null, "libx.so": null}"#)).is_err());
        assert!(suits(musl, &said("manylinux_2_17_x86_64", "{}")).is_err());
    }
}
