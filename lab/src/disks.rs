//! Recordings on memory disks of the kernel: two joined to one (RAID 0), one that fails, and one that drops writes
//! silently.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig, Recorded, record};
use hairspring_recording::Recording;
use hairspring_recording::RecordingVerdict;
use hairspring_recording::verify::{Verified, VerifyOptions, verify};
use hairspring_ring::{Bytes, GapCause, Pages};
use hairspring_source::{Card, Source};
use hairspring_store::{Ways, best};

use crate::Lab;
use crate::findings::{Findings, check, text};
use crate::kernel::Mapped;
use crate::shell;

/// The card: it sends two seconds of data that the test can compute again.
const FRAMES: u64 = 400_000;
const CARD: &str = "virtual:2ch,16bit,200kS/s,data=noise,seed=5,frames=400000";
const FRAME_BYTES: u64 = 4;
/// Notify size, which is also the size of a block.
const BLOCK: Bytes = Bytes(64 << 10);

/// Records a source with small buffers, and lets `meanwhile` happen.
pub(crate) fn recorded(
    source: Box<dyn Source>,
    target: PathBuf,
    meanwhile: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<Recorded, String> {
    let config = RecordConfig {
        buffer: Bytes::mib(8),
        write: WriteSettings { block: BLOCK, ..WriteSettings::default() },
        pages: Pages::Small,
        ..RecordConfig::default()
    };
    let input = Input { source, targets: vec![target], channels: Vec::new() };
    let mut happened = Ok(());
    let stop = AtomicBool::new(false);
    let recorded = record(vec![input], &config, &stop, &mut |cards| {
        if let (Ok(()), Some(card)) = (&happened, cards.first()) {
            happened = meanwhile(card.status.ledger.stored_bytes);
        }
    });
    let recorded = recorded.map_err(text)?.into_iter().next().ok_or("nothing was recorded")?;
    happened.map(|()| recorded)
}

/// Reads a recording back and compares it with its checksums and its generator.
pub(crate) fn verified(target: &Path) -> Result<Verified, String> {
    let recording = Recording::open(&[target.to_owned()]).map_err(text)?;
    let mut store = best(4, Ways::default());
    verify(&mut *store, &recording, VerifyOptions { counters: true, sha512: false }, &mut |_| ()).map_err(text)
}

fn card() -> Result<Box<dyn Source>, String> {
    CARD.parse::<Card>().map_err(text)?.open(None).map_err(text)
}

/// Two disks joined to one, in stripes of 64 KiB; a recording on it is complete.
pub(crate) fn raid0(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    shell::write("/sys/module/md_mod/parameters/new_array", "md0")?;
    shell::run(
        "cd /sys/block/md0/md
         echo none > metadata_version; echo 65536 > chunk_size; echo raid0 > level; echo 2 > raid_disks
         for disk in 0 1; do
             echo 1:$disk > new_dev
             echo $(($(cat /sys/block/ram$disk/size) / 2)) > dev-ram$disk/size
             echo $disk > dev-ram$disk/slot
         done
         echo active > array_state
         mke2fs /dev/md0 && mkdir -p /mnt/raid && mount -t ext4 /dev/md0 /mnt/raid",
    )?;
    let target = PathBuf::from("/mnt/raid/recording");
    let recorded = recorded(card()?, target.clone(), &mut |_| Ok(()))?;
    let outcome = &recorded.outcome;
    check(outcome.verdict == RecordingVerdict::Complete, || format!("{}: {}", outcome.verdict.name(), outcome.reason))?;
    check(outcome.ledger.stored_bytes == FRAMES * FRAME_BYTES, || format!("{:?}", outcome.ledger))?;
    let verified = verified(&target)?;
    check(verified.verdict == RecordingVerdict::Complete && verified.mismatch.is_none(), || format!("{verified:?}"))?;
    // Both members hold a part of the file.
    for disk in ["ram0", "ram1"] {
        let state = std::fs::read_to_string(format!("/sys/block/md0/md/dev-{disk}/state")).map_err(text)?;
        check(state.contains("in_sync"), || format!("{disk} is {state}"))?;
    }
    findings.exact("stored_bytes", outcome.ledger.stored_bytes);
    findings.exact("verdict", verified.verdict.name());
    unmount("/mnt/raid")?;
    shell::write("/sys/block/md0/md/array_state", "clear")
}

/// Unmounts a disk. The kernel closes the files of an io_uring some time after the ring is closed.
fn unmount(path: &str) -> Result<(), String> {
    shell::wait_until(&format!("{path} stays in use"), || shell::run(&format!("umount {path}")).is_ok())
}

/// Sectors of a memory disk.
fn sectors(disk: &str) -> Result<u64, String> {
    let text = std::fs::read_to_string(format!("/sys/block/{disk}/size")).map_err(text)?;
    text.trim().parse().map_err(|_| format!("{disk} has a size of {text}"))
}

/// A disk with a file system, without faults until the test replaces its target.
fn flaky(name: &str, disk: &str) -> Result<(Mapped, u64), String> {
    let sectors = sectors(disk)?;
    let mapped = Mapped::create(name, sectors, "flakey", &format!("/dev/{disk} 0 86400 0")).map_err(text)?;
    let minor = shell::list("/sys/block")?
        .into_iter()
        .find(|folder| std::fs::read_to_string(folder.join("dm/name")).is_ok_and(|found| found.trim() == name));
    let minor = minor.ok_or("the device mapper made no disk")?;
    let node = Path::new("/dev").join(minor.file_name().unwrap_or_default());
    shell::wait_for(&node.to_string_lossy())?;
    shell::run(&format!("mke2fs {0} && mkdir -p /mnt/{name} && mount -t ext4 {0} /mnt/{name}", node.display()))?;
    Ok((mapped, sectors))
}

/// A disk that fails in the middle of a recording: the recording reports that, and all blocks that it claims are on the
/// disk.
pub(crate) fn errors(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let (mapped, sectors) = flaky("failing", "ram2")?;
    let target = PathBuf::from("/mnt/failing/recording");
    let mut failing = false;
    let recorded = recorded(card()?, target.clone(), &mut |stored| {
        if !failing && stored > 4 * BLOCK.0 {
            failing = true;
            let table = "/dev/ram2 0 0 86400 1 error_writes";
            mapped.replace(sectors, "flakey", table).map_err(text)?;
        }
        Ok(())
    })?;
    mapped.replace(sectors, "flakey", "/dev/ram2 0 86400 0").map_err(text)?;
    let outcome = &recorded.outcome;
    let told = format!("{}: {}; {:?}", outcome.verdict.name(), outcome.reason, outcome.ledger);
    check(failing, || format!("the recording was over before the disk failed: {told}"))?;
    check(outcome.verdict == RecordingVerdict::Incomplete, || format!("a disk that failed was reported as {told}"))?;
    let lost = outcome.ledger.lost_bytes;
    check(outcome.ledger.holds() && outcome.ledger.stored_bytes > 0, || told.clone())?;
    let named = outcome.gaps.iter().any(|gap| gap.cause == GapCause::WriteFailed);
    check(named && lost > 0, || format!("no gap names what was not written: {told}; {:?}", outcome.gaps))?;
    check(outcome.ledger.stored_bytes < FRAMES * FRAME_BYTES, || told.clone())?;
    findings.exact("verdict", outcome.verdict.name());
    findings.exact("loss_is_named", named);
    unmount("/mnt/failing")
}

/// A disk that reports writes as done and drops them: the recorder cannot know, but reading back finds the missing
/// blocks.
pub(crate) fn dropped(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let (mapped, sectors) = flaky("lying", "ram3")?;
    let target = PathBuf::from("/mnt/lying/recording");
    let (mut lying, mut lied) = (false, false);
    let recorded = recorded(card()?, target.clone(), &mut |stored| {
        let now = stored > 4 * BLOCK.0 && stored < 12 * BLOCK.0;
        if now != lying {
            // Drops no writes at the end: missing metadata would be too easy to find.
            let table = if now { "/dev/ram3 0 0 86400 1 drop_writes" } else { "/dev/ram3 0 86400 0" };
            mapped.replace(sectors, "flakey", table).map_err(text)?;
            (lying, lied) = (now, true);
        }
        Ok(())
    })?;
    check(lied && !lying, || "the recording was over before the disk had lied".to_owned())?;
    // The metadata were written after the fault, so the recording opens. A refusal to open would not test the blocks
    // that the disk dropped.
    let verified = verified(&target).map_err(|error| format!("read it back: {error}"))?;
    let told = format!(
        "{}, {} of {} blocks damaged, {} missing",
        verified.verdict.name(),
        verified.damaged,
        verified.blocks + verified.damaged,
        verified.missing
    );
    let believed =
        verified.damaged == 0 && verified.missing == Bytes(0) || verified.verdict == RecordingVerdict::Complete;
    let recorder = recorded.outcome.verdict.name();
    check(!believed, || format!("read back as {told}; the recorder said {recorder}"))?;
    findings.exact("believed", believed);
    findings.note("read_back", told);
    unmount("/mnt/lying")
}
