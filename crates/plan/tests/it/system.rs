//! The topology of a computer, from trees of files made like the kernel's.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use hairspring_plan::topology::system::{Below, disks_below, payload_bytes};
use hairspring_plan::{Capacity, DeviceKind, Place, SegmentKind, Topology};
use tempfile::TempDir;

/// A tree like `/sys`.
struct Sys(TempDir);

impl Sys {
    fn new() -> Self {
        let sys = Self(tempfile::tempdir().expect("there is room"));
        for folder in ["bus/pci/devices", "block", "class/block", "dev/block"] {
            fs::create_dir_all(sys.path().join(folder)).expect("there is room");
        }
        sys
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds a function at a path of addresses, with its class and the files about its link.
    fn function(&self, chain: &str, class: &str, link: Option<[&str; 4]>) -> &Self {
        let real = self.path().join("devices/pci0000:00").join(chain);
        fs::create_dir_all(&real).expect("there is room");
        let write = |name: &str, text: &str| fs::write(real.join(name), format!("{text}\n")).expect("there is room");
        write("class", class);
        write("vendor", "0x144d");
        write("device", "0xa808");
        write("numa_node", "-1");
        let names = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
        for (name, text) in names.into_iter().zip(link.into_iter().flatten()) {
            write(name, text);
        }
        let address = chain.rsplit('/').next().expect("a chain");
        symlink(&real, self.path().join("bus/pci/devices").join(address)).expect("there is room");
        self
    }

    /// Adds a disk at a path below `devices`.
    fn disk(&self, path: &str, number: &str) -> &Self {
        let real = self.path().join("devices").join(path);
        fs::create_dir_all(&real).expect("there is room");
        let name = path.rsplit('/').next().expect("a path");
        if real.parent().is_some_and(|parent| parent.join("dev").exists()) {
            fs::write(real.join("partition"), "1\n").expect("there is room");
        } else {
            symlink(&real, self.path().join("block").join(name)).expect("there is room");
        }
        fs::write(real.join("dev"), format!("{number}\n")).expect("there is room");
        symlink(&real, self.path().join("class/block").join(name)).expect("there is room");
        symlink(&real, self.path().join("dev/block").join(number)).expect("there is room");
        self
    }

    fn read(&self) -> Topology {
        Topology::read(self.path())
    }
}

const GEN3_X4: Option<[&str; 4]> = Some(["8.0 GT/s PCIe", "4", "8.0 GT/s PCIe", "4"]);

/// A port with a disk; a port with a switch and two functions behind it; a port to an old bus; an empty slot.
fn server() -> Sys {
    let sys = Sys::new();
    sys.function("0000:00:00.0", "0x060000", None)
        .function("0000:00:01.0", "0x060400", Some(["8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "16"]))
        .function("0000:00:01.0/0000:01:00.0", "0x010802", GEN3_X4)
        .disk("pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1", "259:0")
        .disk("pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p1", "259:1")
        .function("0000:00:02.0", "0x060400", Some(["8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8"]))
        .function("0000:00:02.0/0000:02:00.0", "0x060400", Some(["8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8"]))
        .function(
            "0000:00:02.0/0000:02:00.0/0000:03:01.0",
            "0x060400",
            Some(["2.5 GT/s PCIe", "1", "8.0 GT/s PCIe", "4"]),
        )
        .function(
            "0000:00:02.0/0000:02:00.0/0000:03:01.0/0000:04:00.0",
            "0x118000",
            Some(["2.5 GT/s PCIe", "1", "5.0 GT/s PCIe", "4"]),
        )
        .function("0000:00:03.0", "0x060400", Some(["2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1"]))
        .function("0000:00:03.0/0000:06:00.0", "0x060400", Some(["2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1"]))
        .function("0000:00:03.0/0000:06:00.0/0000:07:04.0", "0x118000", None)
        .function("0000:00:04.0", "0x060400", Some(["Unknown", "0", "16.0 GT/s PCIe", "8"]))
        .function("0000:00:1f.6", "0x020000", None);
    sys
}

#[test]
fn segments_are_the_links_below_ports() {
    let topology = server().read();
    let kind = |name: &str| topology.segment(name).map(|number| &topology.segments()[number].kind);
    let Some(SegmentKind::Pcie(disk)) = kind("0000:00:01.0") else { panic!("a link") };
    assert_eq!(disk.now.map(|link| (link.speed().gt_per_s(), link.lanes())), Some((8.0, 4)));
    // The best link that both ends support.
    assert_eq!(disk.best.map(|link| (link.speed().gt_per_s(), link.lanes())), Some((8.0, 4)));
    assert!(!disk.is_below_its_best());
    assert_eq!(kind("0000:02:00.0"), Some(&SegmentKind::Inside), "the inside of a switch");
    let Some(SegmentKind::Pcie(card)) = kind("0000:03:01.0") else { panic!("a link behind the switch") };
    assert!(card.is_below_its_best());
    assert_eq!(card.best.map(|link| (link.speed().gt_per_s(), link.lanes())), Some((5.0, 4)));
    assert!(matches!(kind("0000:06:00.0"), Some(SegmentKind::Unknown(why)) if why.contains("legacy bus")));
    let Some(SegmentKind::Pcie(empty)) = kind("0000:00:04.0") else { panic!("a slot") };
    assert_eq!((empty.now, empty.best.map(hairspring_plan::topology::link::Link::lanes)), (None, Some(8)));
}

#[test]
fn devices_stand_below_their_ports() {
    let topology = server().read();
    let above = |name: &str| {
        let device = topology.device(name).expect("it is there");
        let path = topology.path(device.place).expect("its place is known");
        path.iter().map(|segment| topology.segments()[*segment].name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(above("nvme0n1"), ["0000:00:01.0"]);
    assert_eq!(above("0000:04:00.0"), ["0000:03:01.0", "0000:02:00.0", "0000:00:02.0"]);
    assert_eq!(above("0000:07:04.0"), ["0000:06:00.0", "0000:00:03.0"]);
    assert_eq!(above("0000:00:1f.6"), ["root:0000:00:1f.6"]);
    let kind = |name: &str| topology.device(name).map(|device| device.kind);
    assert_eq!(kind("nvme0n1"), Some(DeviceKind::Disk));
    assert_eq!(kind("0000:00:1f.6"), Some(DeviceKind::Network));
    assert_eq!(kind("0000:01:00.0"), None, "a controller is where its disk is");
    assert_eq!(kind("0000:00:01.0"), None, "a port is a segment");
}

#[test]
fn the_kernels_sentence_is_told_of_a_device() {
    let topology = server().read();
    let sentence = |name: &str| topology.available(topology.device(name).expect("it is there"));
    assert_eq!(sentence("nvme0n1").as_deref(), Some("31.504 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x4 link)"));
    assert_eq!(
        sentence("0000:04:00.0").as_deref(),
        Some(
            "2.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x1 link at 0000:03:01.0 (capable of 16.000 Gb/s \
             with 5.0 GT/s PCIe x4 link)"
        )
    );
    assert_eq!(sentence("0000:00:1f.6"), None);
}

/// A guest: functions without link attributes, right at the root.
#[test]
fn what_a_virtual_machine_does_not_tell_is_unknown_and_not_guessed() {
    let sys = Sys::new();
    sys.function("0000:00:02.0", "0x018000", None).disk("pci0000:00/0000:00:02.0/virtio1/block/vda", "254:0");
    let topology = sys.read();
    let disk = topology.device("vda").expect("it is there");
    assert_eq!(disk.place, Place::On(0));
    assert!(matches!(topology.segments()[0].capacity(), Capacity::Unknown(_)));
    assert_eq!(topology.available(disk), None);
}

#[test]
fn a_computer_without_pci_or_without_the_kernels_files_is_an_empty_topology() {
    let nothing = Topology::read(Path::new("/nonexistent"));
    assert_eq!((nothing.segments().len(), nothing.devices().len()), (0, 0));
    let sys = Sys::new();
    sys.disk("platform/mmc/mmcblk0", "179:0");
    let topology = sys.read();
    assert_eq!(topology.device("mmcblk0").map(|device| device.place), Some(Place::Unknown));
}

#[test]
fn broken_files_of_the_kernel_are_what_it_does_not_tell() {
    let sys = Sys::new();
    sys.function("0000:00:01.0", "rubbish", Some(["fast", "-4", "", "4294967296"]));
    sys.function("0000:00:01.0/0000:01:00.0", "", Some(["8.0 GT/s PCIe", "0", "8.0 GT/s PCIe", "99"]));
    let topology = sys.read();
    assert!(matches!(topology.segments()[0].capacity(), Capacity::Unknown(_)));
}

/// Numbers its own folder's device so that a tree can be made around it.
fn own_number(folder: &Path) -> String {
    let device = fs::metadata(folder).expect("it is there").dev();
    format!("{}:{}", libc_major(device), libc_minor(device))
}

fn libc_major(device: u64) -> u64 {
    (device >> 8 & 0xfff) | (device >> 32 & !0xfff)
}

fn libc_minor(device: u64) -> u64 {
    (device & 0xff) | (device >> 12 & !0xff)
}

#[test]
fn a_folder_is_on_the_disks_that_its_volume_is_made_of() {
    let folder = tempfile::tempdir().expect("there is room");
    let number = own_number(folder.path());
    let below = |sys: &Sys| disks_below(folder.path(), sys.path(), Path::new("/nonexistent"));

    let partition = Sys::new();
    partition.disk("pci0000:00/0000:00:01.0/nvme/nvme0n1", "259:0");
    partition.disk("pci0000:00/0000:00:01.0/nvme/nvme0n1/nvme0n1p1", &number);
    assert_eq!(below(&partition), Below::Disks(vec!["nvme0n1".to_owned()]));

    let array = Sys::new();
    array.disk("pci0000:00/0000:00:1f.2/ata1/block/sda", "8:0").disk("pci0000:00/0000:00:1f.2/ata2/block/sdb", "8:16");
    array.disk("virtual/block/md0", "9:0").disk("virtual/block/dm-0", &number);
    let slave = |of: &str, member: &str| {
        let slaves = array.path().join("devices/virtual/block").join(of).join("slaves");
        fs::create_dir_all(&slaves).expect("there is room");
        symlink(array.path().join("class/block").join(member), slaves.join(member)).expect("there is room");
    };
    slave("dm-0", "md0");
    slave("md0", "sda");
    slave("md0", "sdb");
    assert_eq!(below(&array), Below::Disks(vec!["sda".to_owned(), "sdb".to_owned()]));
    // An array that contains itself, which only a broken tree has.
    slave("md0", "dm-0");
    assert_eq!(below(&array), Below::Disks(vec!["sda".to_owned(), "sdb".to_owned()]));

    let memory = Sys::new();
    memory.disk("virtual/block/zram0", &number);
    assert!(matches!(below(&memory), Below::Unknown(why) if why.contains("virtual disk")));
}

#[test]
fn a_file_system_without_a_device_of_its_own_is_found_in_the_mounts() {
    let folder = tempfile::tempdir().expect("there is room");
    let number = own_number(folder.path());
    let sys = Sys::new();
    sys.disk("pci0000:00/0000:00:1f.2/ata1/block/sda", "8:0");
    let proc = tempfile::tempdir().expect("there is room");
    fs::create_dir(proc.path().join("self")).expect("there is room");
    let mounted = |kind: &str, source: &str| {
        let line = format!("24 1 {number} / /x rw,relatime shared:1 - {kind} {source} rw\n");
        fs::write(proc.path().join("self/mountinfo"), line).expect("there is room");
        disks_below(folder.path(), sys.path(), proc.path())
    };
    assert_eq!(mounted("btrfs", "/dev/sda"), Below::Disks(vec!["sda".to_owned()]));
    assert!(matches!(mounted("tmpfs", "tmpfs"), Below::Unknown(why) if why.starts_with("tmpfs is not on a disk")));
    assert!(matches!(mounted("ext4", "/dev/gone"), Below::Unknown(why) if why.contains("/dev/gone")));
    let nowhere = disks_below(Path::new("/nonexistent"), sys.path(), proc.path());
    assert!(matches!(nowhere, Below::Unknown(why) if why.contains("No such file")));
}

#[test]
fn the_payload_is_read_from_the_capability() {
    let mut config = vec![0_u8; 256];
    config[6] = 0x10;
    config[0x34] = 0x40;
    (config[0x40], config[0x41]) = (0x01, 0x60);
    (config[0x60], config[0x61]) = (0x10, 0x00);
    config[0x68] = 1 << 5;
    assert_eq!(payload_bytes(&config), Some(256));
    assert_eq!(payload_bytes(&config[..64]), None, "what others than root may read");
    // A ring of capabilities ends.
    config[0x60] = 0x05;
    config[0x61] = 0x40;
    assert_eq!(payload_bytes(&config), None);
}
