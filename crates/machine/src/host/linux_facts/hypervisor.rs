//! Whether the machine is a virtual one, as far as files show.
//!
//! On x86 the flag `hypervisor` of `/proc/cpuinfo` decides; the names come from Xen's own directory, the device tree or
//! the firmware's tables. A hypervisor that hides itself is not found here; CPUID is asked elsewhere.

use super::cpu;
use super::root::{self, Root, malformed};
use crate::facts::Unread;

/// Whether the CPU has the flag of a virtual machine.
pub(super) fn is_present(root: &Root) -> bool {
    cpu::cpu_flags(root).is_ok_and(|flags| flags.iter().any(|flag| flag == "hypervisor"))
}

/// The hypervisor: `none`, or its kind from the kernel's files.
pub(super) fn read(root: &Root) -> Result<String, Unread> {
    let kind = root::line(&root.sys.join("hypervisor/type")).or_else(|_| {
        root::line(&root.sys.join("firmware/devicetree/base/hypervisor/compatible"))
            .map(|kind| kind.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned())
    });
    let flags = cpu::cpu_flags(root);
    // Only x86 has `lm`, long mode; elsewhere the absence of a flag called `hypervisor` proves nothing.
    let is_x86 = flags.as_ref().is_ok_and(|flags| flags.iter().any(|flag| flag == "lm"));
    match (kind, is_present(root)) {
        (Ok(kind), _) => Ok(named(root, &kind)),
        (Err(_), true) => Ok(named(root, "present")),
        (Err(_), false) if is_x86 => Ok("none".to_owned()),
        (Err(unread), false) => Err(match flags {
            Err(unread) => unread,
            Ok(_) => Unread {
                reason: format!("{}, and the CPU has no flag that tells", unread.reason),
                remedy: Some("systemd-detect-virt".to_owned()),
            },
        }),
    }
}

/// Maker and name of the machine as its firmware states them.
pub(super) fn product(root: &Root) -> Result<String, Unread> {
    let directory = root.sys.join("class/dmi/id");
    let name = root::line(&directory.join("product_name"))?;
    match root::line(&directory.join("sys_vendor")) {
        Ok(vendor) if name.starts_with(&vendor) => Ok(name),
        Ok(vendor) => Ok(format!("{vendor} {name}")),
        Err(_) => Ok(name),
    }
    .and_then(|product| match product.trim() {
        "" => Err(malformed(&directory, "empty")),
        product => Ok(product.to_owned()),
    })
}

/// The kind of a hypervisor with the machine it pretends to be.
fn named(root: &Root, kind: &str) -> String {
    match product(root) {
        Ok(product) => format!("{kind} ({product})"),
        Err(_) if kind == "present" => "present, not named by firmware tables".to_owned(),
        Err(_) => kind.to_owned(),
    }
}
