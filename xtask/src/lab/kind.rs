//! [`Kind`]: the machines of the lab, and how their configurations differ.

use std::path::PathBuf;

use crate::workspace::Workspace;

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A PC: ports, cards, disks.
    Pc,
    /// QEMU's board for arm64, which has a chip with GPIO lines.
    Board,
}

/// Modules of the kernel, with their parameters.
type Modules = &'static [(&'static str, &'static str)];

const PC_MODULES: Modules = &[
    ("virtio_pci", ""),
    ("virtio_console", ""),
    ("parport_pc", ""),
    ("ppdev", ""),
    // The test attaches a driver to the first card; `comedi_test` creates the second.
    ("comedi", "comedi_num_legacy_minors=1"),
    ("comedi_test", ""),
    ("comedi_parport", ""),
    ("uio_pci_generic", ""),
    // A network card with a PTP clock.
    ("e1000e", ""),
    ("brd", "rd_nr=4 rd_size=65536"),
    ("raid0", ""),
    ("dm-flakey", ""),
    // The checksum that ext4 requests from the kernel's crypto API by name.
    ("crc32c_generic", ""),
    ("ext4", ""),
    // A card that hands played data to a recorder, and the codec of QEMU's card with its controller.
    ("snd-aloop", "index=0 pcm_substreams=4"),
    ("snd-hda-codec-generic", ""),
    ("snd-hda-intel", "index=1"),
];
/// Programs for sound cards with their library: the place in the guest, and the place in their packages.
const PC_OTHERS: &[(&str, &str)] = &[
    ("bin/aplay", "usr/bin/aplay"),
    ("bin/arecord", "usr/bin/aplay"),
    ("bin/amixer", "usr/bin/amixer"),
    ("lib/libasound.so.2", "usr/lib/x86_64-linux-gnu/libasound.so.2"),
    ("lib/alsa.conf", "usr/share/alsa/alsa.conf"),
];
/// The driver of the lines is built in.
const BOARD_MODULES: Modules = &[("virtio_pci", ""), ("virtio_console", "")];

impl Kind {
    /// The emulator, and its package.
    pub(crate) fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::Pc => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Board => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// Other programs that must be installed, and their packages.
    pub(crate) fn tools(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Pc => &[],
            Self::Board => &[
                ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
                ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
            ],
        }
    }

    /// Packages of programs that run in the machine, not here.
    pub(crate) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Pc => &["alsa-utils", "libasound2", "libasound2-data"],
            Self::Board => &[],
        }
    }

    /// Programs and files of these packages: the place in the machine, and the place in the package.
    pub(crate) fn others(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Pc => PC_OTHERS,
            Self::Board => &[],
        }
    }

    /// Packages without a program.
    pub(crate) fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Pc => &[],
            Self::Board => &["libc6-dev-arm64-cross"],
        }
    }

    /// Its architecture, in the distribution's terms.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::Pc => "amd64",
            Self::Board => "arm64",
        }
    }

    /// Folder of its files.
    pub(crate) fn folder(self, workspace: &Workspace) -> PathBuf {
        workspace.scratch(match self {
            Self::Pc => "lab",
            Self::Board => "lab-board",
        })
    }

    /// The modules that its tests need.
    pub(crate) fn modules(self) -> Modules {
        match self {
            Self::Pc => PC_MODULES,
            Self::Board => BOARD_MODULES,
        }
    }

    /// Modules that the tests load themselves, because they claim the parallel port.
    pub(crate) fn modules_by_tests(self) -> &'static [&'static str] {
        match self {
            Self::Pc => &["pps_parport"],
            Self::Board => &[],
        }
    }

    /// Arguments of the emulator: the machine and its processor.
    pub(crate) fn machine(self) -> [&'static str; 4] {
        match self {
            Self::Pc => ["-machine", "pc", "-cpu", "max"],
            // A later processor signs its pointers, which makes the emulation several times slower.
            Self::Board => ["-machine", "virt", "-cpu", "cortex-a57"],
        }
    }

    /// The kernel's name of the console's serial line.
    pub(crate) fn console(self) -> &'static str {
        match self {
            Self::Pc => "ttyS0",
            Self::Board => "ttyAMA0",
        }
    }

    /// The label in the table for the changes that the host saw.
    pub(crate) fn seen(self) -> &'static str {
        match self {
            Self::Pc => "parallel port",
            Self::Board => "lines of the chip",
        }
    }

    /// The beginning of the names of tests whose effects the host sees.
    pub(crate) fn senders(self) -> &'static [&'static str] {
        match self {
            Self::Pc => &["parport.", "comedi.digital"],
            Self::Board => &["gpio.lines", "gpio.edges", "gpio.overflow", "gpio.unit"],
        }
    }
}
