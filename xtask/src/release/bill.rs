//! The bill of materials: every crate that is linked into a binary of the release, as CycloneDX 1.5 in JSON.

use std::fs;

use serde_json::{Value, json};

use super::Making;
use crate::components::{self, Component};
use crate::library;

/// The packages whose binaries a release has.
const BINARIES: [&str; 3] = ["hairspring-cli", "hairspring-c", "hairspring-python"];
/// For Windows there is no Python package.
const WINDOWS: [&str; 2] = ["hairspring-cli", "hairspring-c"];

pub(super) fn write(making: &Making) -> Result<(), String> {
    let mut all = components::of(making.workspace, &BINARIES, "x86_64-unknown-linux-gnu")?;
    for (packages, target) in [(&BINARIES[..], "aarch64-unknown-linux-gnu"), (&WINDOWS[..], "x86_64-pc-windows-gnu")] {
        for component in components::of(making.workspace, packages, target)? {
            match all.iter_mut().find(|known| known.identity() == component.identity()) {
                Some(known) => known.uses.extend(component.uses),
                None => all.push(component),
            }
        }
    }
    all.sort_by_key(Component::identity);
    all.iter_mut().for_each(|component| {
        component.uses.sort();
        component.uses.dedup();
    });
    let lock = fs::read_to_string(making.workspace.root.join("Cargo.lock"))
        .map_err(|error| format!("read Cargo.lock: {error}"))?;
    let bill = bill(&all, &lock, making.epoch)?;
    let text = serde_json::to_string_pretty(&bill).map_err(|error| format!("write the bill of materials: {error}"))?;
    let file = making.out.join(format!("hairspring-{}.cdx.json", library::version()));
    fs::write(&file, text + "\n").map_err(|error| format!("write {}: {error}", file.display()))
}

fn bill(all: &[Component], lock: &str, epoch: i64) -> Result<Value, String> {
    let time = jiff::Timestamp::from_second(epoch).map_err(|error| format!("read the time {epoch}: {error}"))?;
    let components: Vec<Value> = all.iter().map(|component| entry(component, lock)).collect();
    let uses: Vec<Value> = all
        .iter()
        .map(|component| {
            let used: Vec<String> = component.uses.iter().map(|identity| format!("pkg:cargo/{identity}")).collect();
            json!({"ref": address(component), "dependsOn": used})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "component": {"type": "application", "name": "hairspring", "version": library::version(), "bom-ref": "hairspring"},
        },
        "components": components,
        "dependencies": uses,
    }))
}

fn address(component: &Component) -> String {
    format!("pkg:cargo/{}", component.identity())
}

fn entry(component: &Component, lock: &str) -> Value {
    let mut entry = json!({
        "type": "library",
        "bom-ref": address(component),
        "name": component.name,
        "version": component.version,
        "description": component.description,
        "licenses": [{"expression": component.licence}],
        "purl": address(component),
    });
    if !component.repository.is_empty() {
        entry["externalReferences"] = json!([{"type": "vcs", "url": component.repository}]);
    }
    if let Some(hash) = checksum(lock, &component.name, &component.version) {
        entry["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
    }
    entry
}

/// The checksum of a crate's package in Cargo.lock.
fn checksum<'l>(lock: &'l str, name: &str, version: &str) -> Option<&'l str> {
    let entry = lock.split("[[package]]").find(|entry| {
        entry.contains(&format!("\nname = \"{name}\"\n")) && entry.contains(&format!("\nversion = \"{version}\"\n"))
    })?;
    entry.split("checksum = \"").nth(1)?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn every_crate_of_others_has_its_checksum_and_every_dependency_an_entry() {
        let workspace = Workspace::discover().unwrap();
        let all = components::of(&workspace, &["hairspring-c"], "x86_64-unknown-linux-gnu").unwrap();
        let lock = fs::read_to_string(workspace.root.join("Cargo.lock")).unwrap();
        let bill = bill(&all, &lock, 1_700_000_000).unwrap();
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let known: Vec<&str> =
            bill["components"].as_array().unwrap().iter().map(|entry| entry["bom-ref"].as_str().unwrap()).collect();
        assert!(known.iter().any(|known| known.starts_with("pkg:cargo/libc@")), "{known:?}");
        for (component, entry) in all.iter().zip(bill["components"].as_array().unwrap()) {
            let hash = entry["hashes"][0]["content"].as_str().unwrap_or_default();
            assert_eq!(hash.len(), if component.is_foreign { 64 } else { 0 }, "{entry}");
        }
        for used in
            bill["dependencies"].as_array().unwrap().iter().flat_map(|entry| entry["dependsOn"].as_array().unwrap())
        {
            assert!(known.contains(&used.as_str().unwrap()), "{used}");
        }
    }
}
