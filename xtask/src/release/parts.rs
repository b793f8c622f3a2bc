//! The parts of a release that are for one kind of users: crates, Debian packages, and the static command.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Making, wheels};
use crate::deb::{self, Ingredients};
use crate::test::needs::{self, Need};
use crate::toolchain::{self, MUSL};
use crate::{book, components, library};

pub(super) fn crates(making: &Making) -> Result<(), String> {
    let published = || making.workspace.packages.iter().filter(|package| package.is_published);
    let mut command = making.cargo(&["package", "--quiet", "--no-verify", "--locked", "--allow-dirty"])?;
    for package in published() {
        command.args(["-p", &package.name]);
    }
    library::run(&mut command)?;
    for package in published() {
        let file = format!("{}-{}.crate", package.name, library::version());
        making.add(&making.target().join("package").join(file))?;
    }
    Ok(())
}

pub(super) fn debian(making: &Making) -> Result<(), String> {
    for arguments in [
        &["build", "--quiet", "--release", "--locked", "-p", "hairspring-cli"][..],
        &["rustc", "--quiet", "--release", "--locked", "-p", "hairspring-c", "--crate-type", "staticlib"],
    ] {
        library::run(&mut making.cargo(arguments)?)?;
    }
    let built = making.target().join("release");
    let book = match Need::Book.missing(making.workspace) {
        Some(missing) => Err(missing.to_string()),
        // The list of pages for search engines has a date.
        None => book::build(making.workspace, &built.join("hairspring"))
            .and_then(|mut build| library::run(build.env("SOURCE_DATE_EPOCH", making.epoch.to_string())))
            .map(|_| book::folder(making.workspace)),
    };
    let ingredients = Ingredients {
        command: built.join("hairspring"),
        archive: built.join("libhairspring.a"),
        wheel: wheels::native(making),
        book,
    };
    let packed = deb::pack(making.workspace, &ingredients, &making.workspace.scratch("release-debian"))?;
    packed.files.iter().try_for_each(|file| making.add(file))?;
    match packed.left_out.first() {
        None => Ok(()),
        Some(why) => Err(format!("make all Debian packages: {why}")),
    }
}

/// The command for every Linux on x86-64, with any C library. It has no sentinel: musl does not register threads for
/// rseq.
pub(super) fn static_command(making: &Making) -> Result<(), String> {
    if needs::in_path("musl-gcc").is_none() {
        return Err("find musl-gcc; apt-get install musl-tools".to_owned());
    }
    toolchain::has(making.workspace, MUSL)?;
    let mut build =
        making.cargo(&["build", "--quiet", "--release", "--locked", "-p", "hairspring-cli", "--target", MUSL])?;
    library::run(&mut build)?;
    let program = making.target().join(MUSL).join("release/hairspring");
    let said = library::run(Command::new("readelf").args(["-d", "-l"]).arg(&program))?;
    if said.contains("(NEEDED)") || said.contains("INTERP") {
        return Err(format!("link {} statically: it needs a loader or a library", program.display()));
    }
    library::run(Command::new(&program).args(["delay", "10us", "--count", "3"]))?;
    let name = format!("hairspring-{}-x86_64-linux-musl", library::version());
    let folder = making.workspace.scratch("release-static").join(&name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    library::run(Command::new("strip").arg("-o").arg(folder.join("hairspring")).arg(&program))?;
    licences(making, &folder, &["hairspring-cli"], MUSL)?;
    let mut pack = Command::new("sh");
    let words = "tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s --mtime=@\"$EPOCH\" -c \"$NAME\" | gzip -9 -n > \"$FILE\"";
    pack.args(["-ec", words]).env("EPOCH", making.epoch.to_string()).env("NAME", &name);
    pack.env("FILE", making.out.join(format!("{name}.tar.gz"))).current_dir(folder.parent().unwrap_or(Path::new(".")));
    library::run(&mut pack).map(drop)
}

/// Our licences, and those of everything that is linked into the binaries of these packages.
pub(super) fn licences(making: &Making, folder: &Path, packages: &[&str], target: &str) -> Result<(), String> {
    let linked = components::of(making.workspace, packages, target)?;
    let notices = components::notices(&linked);
    let write = |name: &str, text: &[u8]| {
        fs::write(folder.join(name), text).map_err(|error| format!("write {}: {error}", folder.join(name).display()))
    };
    write("THIRD-PARTY.txt", notices.as_bytes())?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let text = fs::read(making.workspace.root.join(name)).map_err(|error| format!("read {name}: {error}"))?;
        write(name, &text)?;
    }
    Ok(())
}
