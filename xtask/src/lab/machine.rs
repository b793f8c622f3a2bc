//! [`Machine`]: the virtual machine, and one run of it.
//!
//! It is a PC, or a board for arm64, in software emulation, so that it is the same everywhere and needs no rights. It
//! has two CPUs, or one if its clock counts instructions. The PC has a parallel port that writes what is strobed into a
//! file, two serial ports, the `edu` card and a network card; the board has a chip whose lines are wired to each other.
//! The results come back on a virtual serial line. The machine has no network and no disk of this computer. It is ended
//! when its time is over.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::kind::Kind;
use super::wires::Wires;
use super::{image, stops, supplies};
use crate::child::{self, Ending};
use crate::workspace::Workspace;

/// A boot takes seconds; nothing here may wait for longer than this.
const BOOT_LIMIT: Duration = Duration::from_secs(420);
const MEMORY_MIB: &str = "512";

/// Time source of the guest's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// This computer's clock.
    Host,
    /// The instructions that the guest has executed, two nanoseconds each; when it sleeps, time jumps.
    Instructions,
}

/// A machine that can be booted.
pub(super) struct Machine {
    kind: Kind,
    kernel: PathBuf,
    image: PathBuf,
    folder: PathBuf,
    only: String,
}

/// Results of a run.
pub(super) struct Booted {
    /// The lines of the guest.
    pub(super) results: String,
    /// Bytes that the parallel port received, or the changes of its lines.
    pub(super) captured: Vec<u8>,
    /// Empty if it ended unasked.
    pub(super) how_it_ended: String,
    pub(super) console_tail: String,
    pub(super) took: Duration,
}

impl Machine {
    /// Makes the machine's files. It runs the tests whose names begin with `only`.
    pub(super) fn prepare(
        workspace: &Workspace,
        kind: Kind,
        programs: &[PathBuf],
        libraries: &BTreeSet<PathBuf>,
        only: &str,
    ) -> Result<Machine, String> {
        let supplies =
            supplies::find(workspace, kind).ok_or("the kernel and BusyBox are gone: run cargo xtask lab --setup")?;
        let folder = kind.folder(workspace);
        let archive = image::image(kind, &supplies, programs, libraries, &workspace.root.join("lab/init"))?;
        let image = folder.join("image.cpio");
        fs::write(&image, archive).map_err(|error| format!("write {}: {error}", image.display()))?;
        Ok(Machine { kind, kernel: supplies.kernel, image, folder, only: only.to_owned() })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Keeps the sheet of a boot beside the other files, for people and for `hairspring compare`.
    pub(super) fn keep(&self, label: &str, sheet: Option<&serde_json::Value>) -> Result<(), String> {
        let path = self.folder.join(format!("sheet-{}.json", label.replace(' ', "-")));
        // Remove the file of an earlier run.
        let _ = fs::remove_file(&path);
        let kept = sheet.map_or(Ok(()), |sheet| fs::write(&path, format!("{sheet:#}\n")));
        kept.map_err(|error| format!("write {}: {error}", path.display()))
    }

    /// Boots it and waits for its end.
    pub(super) fn boot(&self, label: &str, clock: Clock, limit: Duration) -> Booted {
        let file = |name: &str| {
            let path = self.folder.join(name);
            // Remove the file of an earlier run.
            let _ = fs::remove_file(&path);
            path
        };
        let (console, port, results) = (file("console.log"), file("port.bin"), file("results.jsonl"));
        let pid = file("pid");
        let mut command = Command::new(self.kind.emulator().0);
        // Without anything that is not named here, and with the same random numbers and the same date in each run.
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-seed", "1"]);
        command.args(self.kind.machine()).args(["-accel", "tcg", "-m", MEMORY_MIB]);
        command.args(["-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        match clock {
            Clock::Host => command.args(["-smp", "2"]),
            // One CPU: two that wait for each other by polling would use up each other's instructions.
            Clock::Instructions => command.args(["-smp", "1", "-icount", "shift=1,sleep=off"]),
        };
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.image);
        let options =
            format!("console={} quiet panic=-1 nokaslr random.trust_cpu=off no_timer_check", self.kind.console());
        let stopped = clock == Clock::Host && self.kind == Kind::Pc;
        let told = if stopped { stops::TOLD } else { "" };
        command.args(["-append", &format!("{options} LAB_ONLY={} {told}", self.only)]);
        command.arg("-pidfile").arg(&pid);
        command.args(["-serial", &format!("file:{}", console.display())]);
        command.args(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"]);
        command.args(["-chardev", &format!("file,id=results,path={}", results.display())]);
        let wires = Wires::new(&self.folder);
        match self.kind {
            Kind::Pc => {
                command.args(["-serial", "null", "-parallel", &format!("file:{}", port.display())]);
                command.args(["-device", "edu,dma_mask=0xffffffff"]);
                // A network card with a PTP clock. Its network ends in QEMU.
                command.args(["-netdev", "user,id=nowhere,restrict=on", "-device", "e1000e,netdev=nowhere,romfile="]);
                // A sound card whose input is silence at its own rate.
                command.args(["-audiodev", "none,id=sound", "-device", "intel-hda"]);
                command.args(["-device", "hda-duplex,audiodev=sound"]);
            }
            Kind::Board => drop(command.args(wires.arguments())),
        }
        let (ended, captured) = std::thread::scope(|scope| {
            let connected = (self.kind == Kind::Board).then(|| scope.spawn(|| wires.connect()));
            let over = AtomicBool::new(false);
            let ended = std::thread::scope(|scope| {
                stopped.then(|| scope.spawn(|| stops::stop_and_go(&pid, &results, &over)));
                let ended = child::run(label, &mut command, BOOT_LIMIT.min(limit), &self.folder.join("qemu.log"));
                over.store(true, Ordering::Release);
                ended
            });
            let captured = match connected.map(std::thread::ScopedJoinHandle::join) {
                None => Ok(fs::read(&port).unwrap_or_default()),
                Some(connected) => connected.unwrap_or_else(|_| Err("connect lines: it panicked".to_owned())),
            };
            (ended, captured)
        });
        let text = |path: &PathBuf| {
            fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        };
        let how_it_ended = match (&ended.how, &captured) {
            (Ending::Exit(0), Ok(_)) => String::new(),
            (Ending::Exit(0), Err(why)) => format!("the machine's lines: {why}"),
            (how, _) => format!("the machine: {how}"),
        };
        Booted {
            results: text(&results),
            captured: captured.unwrap_or_default(),
            how_it_ended,
            console_tail: child::tail(&format!("{}\n{}", ended.output.trim_end(), text(&console))),
            took: ended.took,
        }
    }
}
