//! How much CPU time the control group of this process, or one above it, allows.
//!
//! The path of the group names users and services, so no fact contains it, not even as a reason.

use std::path::{Component, Path, PathBuf};

use super::root::{self, Root, malformed};
use crate::facts::Unread;

/// The most groups that are visited on the way up; real hierarchies are about ten deep.
const DEPTH_MAX: usize = 64;

/// The files of version 2 and version 1 that hold a group's limit.
const LIMIT_FILES: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];

/// A limit on CPU time, in µs for each period.
#[derive(Clone, Copy)]
struct Quota {
    quota_us: u64,
    /// Not 0.
    period_us: u64,
}

/// Where the controller for CPU time is mounted, and the own group under that.
struct Place {
    mount: PathBuf,
    group: PathBuf,
    /// Reads the limit of one group; none if it has none.
    quota: fn(&Path) -> Result<Option<Quota>, Unread>,
    /// Whether the top of the mount is a group within a hierarchy that goes on above it, as in a container.
    is_cut: bool,
    /// Whether the own group lies under the mount.
    is_visible: bool,
}

/// The tightest CPU limit among the own control group and its ancestors.
pub(super) fn cpu_limit(root: &Root) -> Result<String, Unread> {
    let place = Place::find(root)?;
    let hidden = || Unread {
        reason: format!("{}: the own control group is not in it", place.mount.display()),
        remedy: Some("read the CPU limit of the container from outside".to_owned()),
    };
    match place.tightest()? {
        Some(limit) => Ok(limit.written()),
        None if !place.is_visible => Err(hidden()),
        None if place.is_cut => Ok("none that is visible from within the container".to_owned()),
        None => Ok("none".to_owned()),
    }
}

impl Place {
    /// The place of this process. Each line of `/proc/self/cgroup` is `number:controllers:path`; version 2 has number 0
    /// and no controllers. Where both versions are mounted, the controller is where version 1 lists it.
    fn find(root: &Root) -> Result<Self, Unread> {
        let path = root.proc.join("self/cgroup");
        let content = root::text(&path)?;
        let lines: Vec<[&str; 3]> = content
            .lines()
            .filter_map(|line| {
                let (number, rest) = line.split_once(':')?;
                let (controllers, group) = rest.split_once(':')?;
                Some([number, controllers, group])
            })
            .collect();
        let mounts = root.sys.join("fs/cgroup");
        let directory_or = |directory: PathBuf, other: PathBuf| match directory.is_dir() {
            true => directory,
            false => other,
        };
        if let Some([_, names, group]) = lines.iter().find(|[_, names, _]| names.split(',').any(|name| name == "cpu")) {
            let mount = directory_or(mounts.join(names), mounts.join("cpu"));
            let is_cut = !mount.join("release_agent").exists();
            return Self::under(mount, group, quota_version_1, is_cut);
        }
        if let Some([_, _, group]) = lines.iter().find(|line| line[..2] == ["0", ""]) {
            let mount = directory_or(mounts.join("unified"), mounts);
            let is_cut = mount.join("cgroup.type").exists();
            return Self::under(mount, group, quota_version_2, is_cut);
        }
        Err(malformed(&path, "no control group"))
    }

    /// The place `group` under `mount`. A group outside of the container's namespace starts with `..`.
    fn under(
        mount: PathBuf,
        group: &str,
        quota: fn(&Path) -> Result<Option<Quota>, Unread>,
        is_cut: bool,
    ) -> Result<Self, Unread> {
        let steps = || Path::new(group).components().filter(|step| *step != Component::RootDir);
        let own = mount.join(steps().collect::<PathBuf>());
        let is_visible = steps().all(|step| matches!(step, Component::Normal(_))) && own.is_dir();
        let group = if is_visible { own } else { mount.clone() };
        Ok(Self { mount, group, quota, is_cut, is_visible })
    }

    /// The tightest limit from the group up to the mount.
    fn tightest(&self) -> Result<Option<Quota>, Unread> {
        let mut tightest: Option<Quota> = None;
        for group in self.group.ancestors().take(DEPTH_MAX) {
            let found = (self.quota)(group)?;
            tightest = match (tightest, found) {
                (Some(least), Some(found)) if found.cpus() < least.cpus() => Some(found),
                (least, found) => least.or(found),
            };
            if group == self.mount {
                break;
            }
        }
        Ok(tightest)
    }
}

impl Quota {
    /// The share of one CPU's time; above 1 for more than one CPU.
    fn cpus(self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }

    /// As people write it.
    fn written(self) -> String {
        let (quota_ms, period_ms) = (self.quota_us as f64 / 1e3, self.period_us as f64 / 1e3);
        format!("{:.2} CPUs ({quota_ms} ms in each {period_ms} ms)", self.cpus())
    }
}

/// `cpu.max` of a group, version 2: `max` or a quota, then the period, in µs.
fn quota_version_2(group: &Path) -> Result<Option<Quota>, Unread> {
    let Some(content) = limit(group, LIMIT_FILES[0])? else { return Ok(None) };
    let mut words = content.split_whitespace();
    let quota = words.next();
    let period_us = words.next().and_then(|word| word.parse().ok()).filter(|period| *period > 0);
    match (quota, period_us) {
        (Some("max"), _) => Ok(None),
        (Some(quota), Some(period_us)) => match quota.parse() {
            Ok(quota_us) => Ok(Some(Quota { quota_us, period_us })),
            Err(_) => Err(malformed(Path::new(LIMIT_FILES[0]), "not a quota")),
        },
        _ => Err(malformed(Path::new(LIMIT_FILES[0]), "not a quota and a period")),
    }
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us` of a group, version 1: -1 is no limit.
fn quota_version_1(group: &Path) -> Result<Option<Quota>, Unread> {
    let Some(quota) = limit(group, LIMIT_FILES[1])? else { return Ok(None) };
    if quota == "-1" {
        return Ok(None);
    }
    let period_us = root::number(&group.join("cpu.cfs_period_us"));
    match (quota.parse(), period_us) {
        (Ok(quota_us), Ok(period_us)) if period_us > 0 => Ok(Some(Quota { quota_us, period_us })),
        _ => Err(malformed(Path::new(LIMIT_FILES[1]), "not a quota, or not one with a period")),
    }
}

/// The content of a limit's file; none where it does not exist, which is at the top of a hierarchy and in groups to
/// which the controller was not given.
fn limit(group: &Path, name: &str) -> Result<Option<String>, Unread> {
    let path = group.join(name);
    match (root::line(&path), path.try_exists()) {
        (Ok(content), _) => Ok(Some(content)),
        (Err(_), Ok(false)) => Ok(None),
        (Err(_), _) => Err(malformed(Path::new(name), "there, but not readable")),
    }
}
