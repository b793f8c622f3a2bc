//! Lists of CPUs as the kernel writes them, `0-3,8`, and values that CPUs have in common.

use crate::facts::Unread;

/// The most CPUs a list may name: the largest `NR_CPUS` a kernel can be built with.
const CPUS_MAX: usize = 8192;

/// The CPUs of a list such as `0-3,8`, ascending and each once; none if it is malformed or names more than
/// [`CPUS_MAX`]. A blank list is an empty one.
pub(super) fn parse(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    let list = list.trim();
    if list.is_empty() {
        return Some(cpus);
    }
    for range in list.split([',', ' ']) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || (last - first) as usize >= CPUS_MAX - cpus.len() {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// CPUs, ascending, as the kernel writes them.
pub(super) fn written(cpus: &[u32]) -> String {
    let ranges: Vec<String> = cpus
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| match run {
            [] => None,
            [only] => Some(only.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    ranges.join(",")
}

/// One value for all CPUs if they agree, else each value with the CPUs that have it, `not read` among them. If no value
/// could be read, the first reason is the answer.
pub(super) fn in_common(values: Vec<(Vec<u32>, Result<String, Unread>)>, none: Unread) -> Result<String, Unread> {
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    let mut reasons = Vec::new();
    for (cpus, value) in values {
        let value = value.unwrap_or_else(|unread| {
            reasons.push(unread);
            "not read".to_owned()
        });
        match groups.iter_mut().find(|group| group.0 == value) {
            Some(group) => group.1.extend(cpus),
            None => groups.push((value, cpus)),
        }
    }
    if groups.len() == usize::from(!reasons.is_empty()) {
        return Err(reasons.into_iter().next().unwrap_or(none));
    }
    if let [(value, _)] = groups.as_slice() {
        return Ok(value.clone());
    }
    let parts: Vec<String> = groups
        .into_iter()
        .map(|(value, mut cpus)| {
            cpus.sort_unstable();
            cpus.dedup();
            format!("CPUs {}: {value}", written(&cpus))
        })
        .collect();
    Ok(parts.join("; "))
}
