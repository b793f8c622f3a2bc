//! Deliberate loads beside a job that is watched for hours: each [`SoakLoad`] is a separate process that counts its
//! work.
//!
//! The process is this program, started with arguments for a load. It writes its count into an unnamed file that its
//! parent reads. It has its own process group, so that a closing terminal does not end it. The kernel ends it with its
//! parent.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Seek, SeekFrom, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hairspring_ring::ByteRate;
use rustix::process::{Signal, set_parent_process_death_signal};

/// The kind of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// A process on each CPU computes; its bytes are those of the computed numbers.
    Cpu,
    /// Copies 64 MiB repeatedly.
    Memory,
    /// Writes blocks of 1 MiB to an unnamed file and syncs them, cycling through 256 MiB.
    Disk,
    /// Sends datagrams to itself, through the loopback device.
    Net,
}

/// A kind of load, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoakLoad {
    /// The kind.
    pub kind: LoadKind,
    /// The greatest rate; unlimited if none.
    pub rate: Option<ByteRate>,
}

/// Running loads. They end when this is dropped.
#[derive(Debug, Default)]
pub struct RunningLoads {
    loads: Vec<RunningLoad>,
}

#[derive(Debug)]
struct RunningLoad {
    load: SoakLoad,
    /// The processes, and the file that each counts in.
    processes: Vec<(Child, File)>,
    /// The counts at the last query.
    done: u64,
}

/// The default rate of a disk, which writing for hours wears out: 144 GB in 8 hours.
const DISK_RATE: f64 = 5e6;
/// Enough for every packet to be noticed, and little enough to leave a CPU free.
const NET_RATE: f64 = 10e6;
const MEMORY_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 1 << 20;
const FILE_BLOCKS: u64 = 256;
const PACKET_BYTES: usize = 1400;
/// Time between two entries of the count.
const ENTERED_EVERY: Duration = Duration::from_millis(100);

impl LoadKind {
    const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Disk, Self::Net];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Net => "net",
        }
    }
}

impl fmt::Display for SoakLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        self.rate.map_or(Ok(()), |rate| write!(f, "={}B/s", rate.bytes_per_s()))
    }
}

impl std::str::FromStr for SoakLoad {
    type Err = String;

    /// `cpu`, `memory`, `disk` or `net`; optionally with a rate: `disk=20MB/s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rate) = text.split_once('=').map_or((text, None), |(name, rate)| (name, Some(rate)));
        let kind = LoadKind::ALL.into_iter().find(|kind| kind.name() == name.trim());
        let kind = kind.ok_or_else(|| format!("'{name}' is not a load: write cpu, memory, disk or net"))?;
        let usual = match kind {
            LoadKind::Cpu | LoadKind::Memory => None,
            LoadKind::Disk => ByteRate::new(DISK_RATE),
            LoadKind::Net => ByteRate::new(NET_RATE),
        };
        let rate = rate.map(|rate| rate.parse::<ByteRate>().map_err(|error| error.to_string())).transpose()?;
        match rate {
            Some(rate) if rate.bytes_per_s() <= 0.0 => {
                Err("a load needs a rate above zero: leave it out, or write a rate".to_owned())
            }
            rate => Ok(Self { kind, rate: rate.or(usual) }),
        }
    }
}

impl RunningLoads {
    /// Starts loads as processes of `program`, which calls [`serve_load`] when started with `words`, the load and the
    /// folder.
    ///
    /// # Errors
    /// A process could not be started.
    pub fn start(loads: &[SoakLoad], program: &Path, words: &[&str], folder: &Path, cpus: usize) -> io::Result<Self> {
        let mut running = Self::default();
        for load in loads {
            let mut processes = Vec::new();
            for _ in 0..if load.kind == LoadKind::Cpu { cpus } else { 1 } {
                let count = tempfile::tempfile()?;
                let mut command = Command::new(program);
                command.args(words).arg(load.to_string()).arg(folder);
                let command = command.stdin(Stdio::null()).stdout(count.try_clone()?).stderr(Stdio::null());
                processes.push((command.process_group(0).spawn()?, count));
            }
            running.loads.push(RunningLoad { load: *load, processes, done: 0 });
        }
        Ok(running)
    }

    /// The bytes of each load since the last query; none for a load with an ended process.
    pub fn progress(&mut self) -> Vec<(SoakLoad, Option<u64>)> {
        let of = |running: &mut RunningLoad| {
            let mut done = 0;
            for (child, count) in &mut running.processes {
                let mut bytes = [0; 8];
                // No count is entered yet.
                let entered = count.read_exact_at(&mut bytes, 0).map(|()| u64::from_le_bytes(bytes)).unwrap_or(0);
                if child.try_wait().ok().flatten().is_some() {
                    return (running.load, None);
                }
                done += entered;
            }
            let before = std::mem::replace(&mut running.done, done);
            (running.load, Some(done - before))
        };
        self.loads.iter_mut().map(of).collect()
    }
}

impl Drop for RunningLoads {
    fn drop(&mut self) {
        for (child, _) in self.loads.iter_mut().flat_map(|running| &mut running.processes) {
            // It may have ended already.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Produces a load until its parent process ends. Its standard output is the file of its count.
///
/// # Errors
/// The load's memory, file or socket cannot be opened, or fails.
pub fn serve_load(load: SoakLoad, folder: &Path) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut count = Count {
        file: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        rate: load.rate,
        began: Instant::now(),
        done: 0,
        entered: Instant::now(),
    };
    match load.kind {
        LoadKind::Cpu => loop {
            let mut number = count.done | 1;
            for _ in 0..100_000 {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
            }
            black_box(number);
            count.add(100_000 * 8)?;
        },
        LoadKind::Memory => {
            let mut memory = vec![1_u8; MEMORY_BYTES];
            let (one, other) = memory.split_at_mut(MEMORY_BYTES / 2);
            loop {
                for (from, to) in one.chunks(BLOCK_BYTES).zip(other.chunks_mut(BLOCK_BYTES)) {
                    black_box(&mut *to).copy_from_slice(from);
                    count.add(BLOCK_BYTES)?;
                }
            }
        }
        LoadKind::Disk => {
            let mut file = tempfile::tempfile_in(folder)?;
            let block = vec![0xA5; BLOCK_BYTES];
            loop {
                file.seek(SeekFrom::Start(0))?;
                for _ in 0..FILE_BLOCKS {
                    file.write_all(&block)?;
                    file.sync_data()?;
                    count.add(BLOCK_BYTES)?;
                }
            }
        }
        LoadKind::Net => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(socket.local_addr()?)?;
            let mut packet = [0_u8; PACKET_BYTES];
            loop {
                socket.send(&packet)?;
                let bytes = socket.recv(&mut packet)?;
                count.add(bytes)?;
            }
        }
    }
}

/// The count of a load, entered into its file from time to time; limits the rate.
struct Count {
    file: File,
    rate: Option<ByteRate>,
    began: Instant,
    done: u64,
    entered: Instant,
}

impl Count {
    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.done += bytes as u64;
        if self.entered.elapsed() >= ENTERED_EVERY {
            self.entered = Instant::now();
            self.file.write_all_at(&self.done.to_le_bytes(), 0)?;
        }
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(self.done as f64 / rate.bytes_per_s());
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<SoakLoad>().map(|load| load.to_string());
        assert_eq!(read("cpu"), Ok("cpu".to_owned()));
        assert_eq!(read("disk=20MB/s"), Ok("disk=20000000B/s".to_owned()));
        // A disk wears out, so there is always a rate.
        assert_eq!(read("disk"), Ok("disk=5000000B/s".to_owned()));
        assert_eq!(read("disk=20000000B/s"), read("disk=20MB/s"));
        assert!(read("heat").is_err_and(|why| why.contains("write cpu, memory, disk or net")));
        assert!(read("disk=0B/s").is_err() && read("net=fast").is_err());
    }
}
