//! The table of Debian packages, and which installed file belongs to which.

use crate::library;

/// One binary package.
pub(super) struct Package {
    /// The name; `@N@` stands for the number of the library's interface.
    pub(super) name: &'static str,
    pub(super) section: &'static str,
    /// Whether it is the same on every architecture.
    pub(super) is_for_all: bool,
    /// Fields of the control file that are not the same for all. `@V@` is the version, `@D@` what dpkg-shlibdeps found.
    pub(super) fields: &'static str,
    /// The short description.
    pub(super) synopsis: &'static str,
    /// The long description: paragraphs.
    pub(super) description: &'static [&'static str],
    /// Maintainer scripts and other control files: name and text.
    pub(super) control: &'static [(&'static str, &'static str)],
}

impl Package {
    pub(super) fn name(&self) -> String {
        numbered(self.name)
    }
}

/// A text with the number of the interface in place of `@N@`.
pub(super) fn numbered(text: &str) -> String {
    text.replace("@N@", &library::INTERFACE.to_string())
}

/// The names of all packages.
pub(crate) fn names() -> Vec<String> {
    PACKAGES.iter().map(Package::name).collect()
}

pub(super) const COMMAND: &str = "hairspring";
pub(super) const SHARED: &str = "libhairspring@N@";
pub(super) const DEVELOPMENT: &str = "libhairspring-dev";
pub(super) const PYTHON: &str = "python3-hairspring";
pub(super) const TCL: &str = "tcl-hairspring";
pub(super) const BOOK: &str = "hairspring-doc";
pub(super) const REALTIME: &str = "hairspring-realtime";

const WHAT_IT_IS: &str = "Hairspring turns an ordinary Linux computer into an exact timing instrument. It measures what clocks, delays, task switches, \
    reactions and transfers really cost on the machine, and prints that as a timing data sheet.";

pub(super) const PACKAGES: &[Package] = &[
    Package {
        name: COMMAND,
        section: "science",
        is_for_all: false,
        fields: "Depends: @D@\nRecommends: hairspring-realtime\nSuggests: hairspring-doc, python3-hairspring, tcl-hairspring\n",
        synopsis: "measures what a computer really does with time",
        description: &[
            WHAT_IT_IS,
            "This package has the command: it takes and compares data sheets, says whether the machine can do a job, records without loss, and \
             runs front ends in which events drive devices.",
        ],
        control: &[],
    },
    Package {
        name: SHARED,
        section: "libs",
        is_for_all: false,
        fields: "Depends: @D@\nMulti-Arch: same\nBreaks: hairspring (<< @V@)\nReplaces: hairspring (<< @V@)\n",
        synopsis: "exact delays and a calibrated time base - shared library",
        description: &[
            WHAT_IT_IS,
            "This package has the shared library for C, C++ and Tcl: delays that are never early, profiles, real-time settings, data sheets \
             and a multitasking executive.",
        ],
        control: &[("triggers", "activate-noawait ldconfig\n")],
    },
    Package {
        name: DEVELOPMENT,
        section: "libdevel",
        is_for_all: false,
        fields: "Depends: libhairspring@N@ (= @V@)\nMulti-Arch: same\nBreaks: hairspring (<< @V@)\nReplaces: hairspring (<< @V@)\n\
                 Suggests: hairspring-doc, pkg-config | cmake\n",
        synopsis: "exact delays and a calibrated time base - development files",
        description: &[
            WHAT_IT_IS,
            "This package has the headers, the static library, and the files for pkg-config and CMake.",
        ],
        control: &[],
    },
    Package {
        name: PYTHON,
        section: "python",
        is_for_all: false,
        fields: "Depends: @D@, python3 (>= 3.10)\nSuggests: python3-numpy, python3-pandas, python3-dask, python3-xarray\n",
        synopsis: "exact delays, recordings and timing data sheets for Python 3",
        description: &[WHAT_IT_IS, "This package has the module for Python 3. Importing it imports no other package."],
        control: &[("postinst", PYTHON_POSTINST), ("prerm", PYTHON_PRERM)],
    },
    Package {
        name: TCL,
        section: "interpreters",
        is_for_all: false,
        fields: "Depends: @D@, tcl (>= 8.6)\nBreaks: hairspring (<< @V@)\nReplaces: hairspring (<< @V@)\n",
        synopsis: "exact delays and timing data sheets for Tcl",
        description: &[WHAT_IT_IS, "This package has the extension for Tcl."],
        control: &[],
    },
    Package {
        name: BOOK,
        section: "doc",
        is_for_all: true,
        fields: "Multi-Arch: foreign\n",
        synopsis: "exact delays and timing data sheets - documentation",
        description: &[WHAT_IT_IS, "This package has the book, as pages that a browser opens without a network."],
        control: &[],
    },
    Package {
        name: REALTIME,
        section: "science",
        is_for_all: true,
        fields: "Depends: hairspring (>= @V@), adduser, libcap2-bin, libpam-modules\nMulti-Arch: foreign\n",
        synopsis: "real-time rights for a group, and the service of a station",
        description: &[
            WHAT_IT_IS,
            "This package makes the group \"hairspring\" and opens parts of the machine to its members: real-time priorities, locked memory, the \
             depth of idle states, and perf events. A member can therefore stop the machine, and see what all users run. README.Debian names \
             each right, its file and its cost. The installation adds nobody to the group.",
            "It also has the service hairspring-station@, which runs a front end with these rights in a sandbox of systemd.",
        ],
        control: &[
            ("postinst", REALTIME_POSTINST),
            ("prerm", REALTIME_PRERM),
            ("postrm", REALTIME_POSTRM),
            ("conffiles", "/etc/security/limits.d/hairspring.conf\n"),
            ("triggers", "interest-noawait /usr/bin/hairspring\n"),
        ],
    },
];

/// The package of a file below the prefix.
pub(super) fn owner(below: &str) -> Result<&'static str, String> {
    let name = below.rsplit('/').next().unwrap_or(below);
    let is_ours = |start: &str| below.starts_with(start);
    if is_ours("include/") || below.contains("/pkgconfig/") || below.contains("/cmake/") {
        Ok(DEVELOPMENT)
    } else if below.contains("/tcltk/") {
        Ok(TCL)
    } else if name == "libhairspring.a" || name == "libhairspring.so" {
        Ok(DEVELOPMENT)
    } else if name.starts_with("libhairspring.so.") {
        Ok(SHARED)
    } else if is_ours("bin/") || is_ours("share/") || is_ours("libexec/") {
        Ok(COMMAND)
    } else {
        Err(format!("find the Debian package that {below} belongs to; see xtask/src/deb/list.rs"))
    }
}

const PYTHON_POSTINST: &str = r#"#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null 2>&1; then
    py3compile -p python3-hairspring
fi
"#;

const PYTHON_PRERM: &str = r#"#!/bin/sh
set -e
if command -v py3clean >/dev/null 2>&1; then
    py3clean -p python3-hairspring
else
    find /usr/lib/python3/dist-packages/hairspring -name __pycache__ -prune -exec rm -r {} +
fi
"#;

// The copy has a capability, so it is the group's alone. It is made again whenever the command changes.
const REALTIME_POSTINST: &str = r#"#!/bin/sh
set -e
folder=/usr/lib/hairspring/perf
copy() {
    if [ -x /usr/bin/hairspring ]; then
        install -d -m 0755 "$folder"
        install -o root -g hairspring -m 0750 /usr/bin/hairspring "$folder/hairspring.new"
        if setcap cap_perfmon=ep "$folder/hairspring.new"; then
            mv -f "$folder/hairspring.new" "$folder/hairspring"
        else
            rm -f "$folder/hairspring.new" "$folder/hairspring"
            echo "hairspring-realtime: this file system or kernel has no file capabilities; hairspring-perf does not work here" >&2
        fi
    fi
}
case "$1" in
configure)
    addgroup --system --quiet hairspring
    copy
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
        udevadm control --reload || true
        udevadm trigger --subsystem-match=misc --sysname-match=cpu_dma_latency || true
    fi
    ;;
triggered)
    copy
    ;;
esac
"#;

const REALTIME_PRERM: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ]; then
    if [ -d /run/systemd/system ]; then
        systemctl stop 'hairspring-station@*.service' || true
    fi
    rm -rf /usr/lib/hairspring
fi
"#;

const REALTIME_POSTRM: &str = r#"#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
    rm -rf /var/lib/private/hairspring /var/lib/hairspring
    if command -v delgroup >/dev/null 2>&1; then
        delgroup --system --quiet --only-if-empty hairspring || true
    fi
fi
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_package() {
        for (below, package) in [
            ("bin/hairspring", COMMAND),
            ("share/man/man1/hairspring.1", COMMAND),
            ("libexec/hairspring/callers-c", COMMAND),
            ("include/hairspring.h", DEVELOPMENT),
            ("lib/x86_64-linux-gnu/libhairspring.a", DEVELOPMENT),
            ("lib/x86_64-linux-gnu/libhairspring.so", DEVELOPMENT),
            ("lib/x86_64-linux-gnu/cmake/hairspring/hairspringConfig.cmake", DEVELOPMENT),
            ("lib/x86_64-linux-gnu/libhairspring.so.0", SHARED),
            ("lib/tcltk/x86_64-linux-gnu/hairspring0.1.0/pkgIndex.tcl", TCL),
        ] {
            assert_eq!(owner(below), Ok(package), "{below}");
        }
        assert!(owner("sbin/unknown").is_err());
    }

    #[test]
    fn the_shared_library_is_named_after_its_soname() {
        let name = numbered(SHARED);
        let (stem, number) = name.split_at("libhairspring".len());
        assert_eq!(format!("{stem}.so.{number}"), library::soname());
    }
}
