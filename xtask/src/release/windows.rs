//! The archive for 64-bit Windows: command and DLL with their versions, import libraries for both families of linkers,
//! headers.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Making, parts, tools, trial};
use crate::library;
use crate::test::needs;
use crate::toolchain::{self, WINDOWS};

/// Writes the resource that Windows shows as a file's properties.
const RESOURCES: &str = "x86_64-w64-mingw32-windres";
/// The package of the binary, the arguments that choose it, its file, and the number of its kind in the resource.
const BINARIES: [(&str, &[&str], &str, &str); 2] = [
    ("hairspring-cli", &["--bin", "hairspring"], "hairspring.exe", "1"),
    ("hairspring-c", &["--lib", "--crate-type", "cdylib"], "hairspring.dll", "2"),
];

pub(super) fn archive(making: &Making) -> Result<(), String> {
    if needs::in_path(RESOURCES).is_none() {
        return Err(format!("find {RESOURCES}; run cargo xtask test --setup --only windows, which installs it"));
    }
    toolchain::has(making.workspace, WINDOWS)?;
    let root = &making.workspace.root;
    let name = format!("hairspring-{}-x86_64-windows", library::version());
    let folder = making.workspace.scratch("release-windows").join(&name);
    let _ = fs::remove_dir_all(&folder);
    for below in ["bin", "lib/cmake/hairspring", "include", "vba", "licences"] {
        fs::create_dir_all(folder.join(below)).map_err(|error| format!("create {below} of the archive: {error}"))?;
    }
    for (package, which, file, kind) in BINARIES {
        let resource = resource(making, file, kind)?;
        let mut build =
            making.cargo(&["rustc", "--release", "--quiet", "--locked", "--target", WINDOWS, "-p", package])?;
        build.args(which).arg("--").arg(format!("-Clink-arg={}", resource.display()));
        // The linker would write when it ran.
        build.arg("-Clink-arg=-Wl,--no-insert-timestamp");
        library::run(&mut build)?;
        let built = making.target().join(WINDOWS).join("release").join(file);
        library::run(
            Command::new("x86_64-w64-mingw32-strip").arg("-p").arg("-o").arg(folder.join("bin").join(file)).arg(built),
        )?;
    }
    import_libraries(making, &folder)?;
    for (from, to) in [
        (library::HEADER, "include/hairspring.h"),
        ("bindings/vba/Hairspring.bas", "vba/Hairspring.bas"),
        ("SECURITY.md", "SECURITY.md"),
    ] {
        fs::copy(root.join(from), folder.join(to)).map_err(|error| format!("copy {from}: {error}"))?;
    }
    for (from, to, ending) in [
        ("packaging/windows/README.txt", "README.txt", "\r\n"),
        ("crates/c/cmake/hairspringConfig.cmake.in", "lib/cmake/hairspring/hairspringConfig.cmake", "\n"),
        ("crates/c/cmake/hairspringConfigVersion.cmake.in", "lib/cmake/hairspring/hairspringConfigVersion.cmake", "\n"),
    ] {
        let text = fs::read_to_string(root.join(from)).map_err(|error| format!("read {from}: {error}"))?;
        let text =
            text.replace("@VERSION@", library::version()).replace("@LIBRARIES@", "lib").replace("@UP@", "../../..");
        let text = text.replace("@SONAME@", &library::soname()).replace('\n', ending);
        fs::write(folder.join(to), text).map_err(|error| format!("write {to}: {error}"))?;
    }
    trial::run(making, &folder)?;
    parts::licences(making, &folder.join("licences"), &["hairspring-cli", "hairspring-c"], WINDOWS)?;
    let mut zip = Command::new("python3");
    zip.args(["-c", ZIP]).arg(making.out.join(format!("{name}.zip"))).arg(&folder).arg(making.epoch.to_string());
    library::run(&mut zip).map(drop)
}

/// Compiles the resource with the version of a file.
fn resource(making: &Making, file: &str, kind: &str) -> Result<std::path::PathBuf, String> {
    let from = "packaging/windows/version.rc";
    let text = fs::read_to_string(making.workspace.root.join(from)).map_err(|error| format!("read {from}: {error}"))?;
    let text = text.replace("@COMMAS@", &library::version().replace('.', ",")).replace("@VERSION@", library::version());
    let text = text.replace("@FILE@", file).replace("@TYPE@", kind);
    let script = making.workspace.scratch("release-windows").join(format!("{file}.rc"));
    let object = script.with_extension("res.o");
    fs::write(&script, text).map_err(|error| format!("write {}: {error}", script.display()))?;
    library::run(Command::new(RESOURCES).arg(&script).args(["-O", "coff", "-o"]).arg(&object))?;
    Ok(object)
}

/// The import libraries: MinGW's, and the short form that Microsoft's linker and lld read.
fn import_libraries(making: &Making, folder: &Path) -> Result<(), String> {
    let header = fs::read_to_string(making.workspace.root.join(library::HEADER)).map_err(|error| error.to_string())?;
    let names = library::declared(&header);
    let definition = making.workspace.scratch("release-windows").join("hairspring.def");
    let exports: String = names.iter().map(|name| format!("    {name}\n")).collect();
    fs::write(&definition, format!("LIBRARY hairspring.dll\nEXPORTS\n{exports}"))
        .map_err(|error| format!("write {}: {error}", definition.display()))?;
    let python = tools::python(making.workspace)?;
    let mut mingw = Command::new("x86_64-w64-mingw32-dlltool");
    mingw.arg("--deterministic-libraries");
    let mut zig = Command::new(python);
    zig.args(["-m", "ziglang", "dlltool"]);
    for (mut program, library) in [(mingw, "libhairspring.dll.a"), (zig, "hairspring.lib")] {
        // In the folder: the names of symbols and members are made of the library's path as it is written here.
        program
            .args(["-m", "i386:x86-64", "-d"])
            .arg(&definition)
            .args(["-l", library])
            .current_dir(folder.join("lib"));
        library::run(&mut program)?;
    }
    Ok(())
}

/// Packs a folder, with the same time in every entry and the entries in order.
const ZIP: &str = "
import pathlib, sys, time, zipfile
archive, folder, epoch = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
moment = time.gmtime(epoch)[:6]
with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as z:
    for path in sorted(p for p in folder.rglob('*') if p.is_file()):
        entry = zipfile.ZipInfo(str(path.relative_to(folder.parent)), moment)
        entry.external_attr, entry.compress_type, entry.create_system = 0o100644 << 16, zipfile.ZIP_DEFLATED, 3
        z.writestr(entry, path.read_bytes())
";
