//! The files for Windows, tried before they are packed: their dependencies, and programs in C that each of the import
//! libraries links.
//!
//! The programs and the command run under Wine, with the DLL of the release. Microsoft's linker does not run here; lld,
//! which Zig has, reads the same form of import library.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Making, tools};
use crate::library;
use crate::test::windows::{self, LINKER, OBJDUMP};

/// Libraries that every 64-bit Windows since 10 has.
const OF_WINDOWS: [&str; 12] = [
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "dbghelp.dll",
    "kernel32.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "ole32.dll",
    "shell32.dll",
    "userenv.dll",
    "winmm.dll",
    "ws2_32.dll",
];
/// Names of sets of functions that Windows resolves to its libraries.
const SETS: &str = "api-ms-win-";

/// Checks and runs the files in the folder of the archive.
pub(super) fn run(making: &Making, folder: &Path) -> Result<(), String> {
    let wine = windows::wine().ok_or("find Wine; run cargo xtask test --setup --only windows, which installs it")?;
    let place = making.workspace.scratch("release-windows").join("trial");
    let _ = fs::remove_dir_all(&place);
    let prefix = place.join("prefix");
    windows::make_prefix(&prefix)?;
    for name in ["hairspring.exe", "hairspring.dll"] {
        let file = folder.join("bin").join(name);
        let said = library::run(Command::new(OBJDUMP).arg("-p").arg(&file))?;
        if let Some(strange) = needed(&said).into_iter().find(|needed| !is_of_windows(needed)) {
            return Err(format!("make {name} for any Windows: it needs {strange}"));
        }
        fs::copy(&file, place.join(name)).map_err(|error| format!("copy {}: {error}", file.display()))?;
    }
    library::run(&mut windows::compile_stub(making.workspace, &place))?;
    let mut lld = Command::new(tools::python(making.workspace)?);
    lld.args(["-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]);
    for (mut compiler, program, library) in
        [(Command::new(LINKER), "mingw.exe", "libhairspring.dll.a"), (lld, "lld.exe", "hairspring.lib")]
    {
        compiler.args(["-std=c11", "-O1", "-I"]).arg(folder.join("include")).arg("-o").arg(place.join(program));
        compiler.arg(windows::source("client.c")).arg(folder.join("lib").join(library));
        library::run(compiler.current_dir(&making.workspace.root))?;
        library::run(windows::under_wine(&wine, &prefix, &place, program).arg("client.tmp"))?;
    }
    let said = library::run(windows::under_wine(&wine, &prefix, &place, "hairspring.exe").arg("--version"))?;
    if said.contains(library::version()) {
        Ok(())
    } else {
        Err(format!("run hairspring.exe --version: it says {said}"))
    }
}

/// The libraries that a file needs, from objdump's output.
fn needed(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.trim().strip_prefix("DLL Name: ")).collect()
}

fn is_of_windows(library: &str) -> bool {
    let library = library.to_ascii_lowercase();
    library.starts_with(SETS) || OF_WINDOWS.contains(&library.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_the_compiler_is_not_one_of_windows() {
        let said = "\tDLL Name: KERNEL32.dll\n\tvma: 1\n\tDLL Name: libgcc_s_seh-1.dll\n\tDLL Name: api-ms-win-core-synch-l1-2-0.dll\n";
        let needed = needed(said);
        assert_eq!(needed.len(), 3);
        let strange: Vec<&str> = needed.into_iter().filter(|library| !is_of_windows(library)).collect();
        assert_eq!(strange, ["libgcc_s_seh-1.dll"]);
    }
}
