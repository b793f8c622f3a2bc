//! [`Best`]: the settings that the last doctor confirmed, stored for `run --best` with the conditions of that run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hairspring_file::NewFile;
use hairspring_machine::{Host, Machine};
use hairspring_settings::Choice;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// The environment variable for the state folder, if it is not `~/.local/state`.
pub(crate) const ENVIRONMENT: (&str, &str) =
    ("XDG_STATE_HOME", "the folder of hairspring/best.json, if it is not ~/.local/state");
/// The file of the settings that the last doctor confirmed.
pub(crate) const FILE: (&str, &str) =
    ("~/.local/state/hairspring/best.json", "the settings that the last `hairspring doctor` confirmed on this machine");

/// Facts that remain from one boot to the next, unless the machine changes.
const CONDITIONS: [&str; 6] =
    ["cpu.model", "cpu.online", "kernel.command_line", "kernel.hypervisor", "kernel.release", "kernel.version"];

/// The settings that a doctor confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Best {
    schema: Schema,
    /// The job, as given to the doctor.
    pub(crate) job: String,
    /// The settings in the form of `run --set`; empty if none helps.
    pub(crate) settings: String,
    /// The median with them over the median without.
    ratio: f64,
    conditions: BTreeMap<String, String>,
}

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[serde(rename = "hairspring.best/1")]
    One,
}

impl Best {
    /// The present conditions of this machine.
    pub(crate) fn new(job: &str, settings: &str, ratio: f64) -> Self {
        let facts = Host.facts();
        let now = |id: &str| match facts.facts.iter().find(|fact| fact.id == id).map(|fact| &fact.value) {
            Some(Ok(value)) => value.clone(),
            _ => "unknown".to_owned(),
        };
        let conditions = CONDITIONS.map(|id| (id.to_owned(), now(id))).into();
        Self { schema: Schema::One, job: job.to_owned(), settings: settings.to_owned(), ratio, conditions }
    }

    /// Stores it for `run --best`, replacing an earlier file. Returns the path.
    pub(crate) fn keep(&self) -> io::Result<PathBuf> {
        let path = place().ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?;
        fs::create_dir_all(hairspring_file::folder_of(&path))?;
        let mut file = NewFile::begin(&path)?;
        writeln!(file, "{}", serde_json::to_string_pretty(self).map_err(io::Error::other)?)?;
        file.replace()?;
        Ok(path)
    }

    /// The settings that the last doctor confirmed, with a sentence on their origin.
    pub(crate) fn last() -> Result<(Vec<Choice>, String), Failure> {
        let again = "run `hairspring doctor` first";
        let path = place().ok_or_else(|| {
            Failure::bad_request("failed to find the doctor's result: neither XDG_STATE_HOME nor HOME is set")
        })?;
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::bad_request(format!("no doctor has stored a result here: {again}")),
            _ => Failure::failed(format!("failed to read {}: {error}; {again}", path.display())),
        })?;
        let best = Self::read(&text)
            .map_err(|why| Failure::failed(format!("failed to read {}: {why}; {again}", path.display())))?;
        let now = Self::new(&best.job, &best.settings, best.ratio);
        if let Some(change) = best.change(&now) {
            let text = format!("the last doctor's result may no longer hold: {change}; run `hairspring doctor` again");
            return Err(Failure::bad_request(text));
        }
        let age = modified(&path).map_or_else(|| "some time".to_owned(), age);
        let choices = best
            .choices()
            .map_err(|why| Failure::failed(format!("failed to read {}: {why}; {again}", path.display())))?;
        let told = match choices.as_slice() {
            [] => format!("the doctor of {age} ago found no setting that helps `{}`", best.job),
            _ => format!(
                "the doctor of {age} ago confirmed {} for `{}`: median × {:.2}",
                best.settings, best.job, best.ratio
            ),
        };
        Ok((choices, told))
    }

    fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn choices(&self) -> Result<Vec<Choice>, String> {
        let each = self.settings.split(',').filter(|text| !text.is_empty());
        each.map(|text| text.parse().map_err(|error: hairspring_settings::ChoiceError| error.to_string())).collect()
    }

    /// The first condition that has changed.
    fn change(&self, now: &Self) -> Option<String> {
        let changed = now.conditions.iter().find(|(id, value)| self.conditions.get(*id) != Some(value));
        changed.map(|(id, value)| {
            let before = self.conditions.get(id).map_or("unknown", String::as_str);
            format!("{id} was `{before}` and is `{value}`")
        })
    }
}

fn place() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(folder.join("hairspring/best.json"))
}

fn modified(path: &Path) -> Option<Duration> {
    let at = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    SystemTime::now().duration_since(at).ok()
}

/// An age in its largest whole unit.
fn age(span: Duration) -> String {
    let minutes = span.as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60) {
        (0, 0) => format!("{minutes} min"),
        (0, hours) => format!("{hours} h"),
        (days, _) => format!("{days} d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_and_another_kernel_is_noticed() {
        let best = Best::new("react 100us", "idle=off,policy=fifo:80", 0.12);
        let text = serde_json::to_string(&best).expect("text");
        assert_eq!(Best::read(&text), Ok(best.clone()));
        assert_eq!(best.choices().expect("choices").len(), 2);
        assert_eq!(best.change(&best), None);
        let mut other = best.clone();
        other.conditions.insert("kernel.release".to_owned(), "0.1".to_owned());
        assert!(other.change(&best).is_some_and(|change| change.starts_with("kernel.release was `0.1` and is `")));
        assert!(Best::read(&text.replace("best/1", "best/2")).is_err());
        assert!(Best { settings: "nothing=1".to_owned(), ..best }.choices().is_err());
    }

    #[test]
    fn ages_are_told_in_whole_units() {
        for (seconds, told) in [(59, "0 min"), (7_199, "1 h"), (86_400 * 3, "3 d")] {
            assert_eq!(age(Duration::from_secs(seconds)), told);
        }
    }
}
