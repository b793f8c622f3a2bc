//! Jobs: the built-in ones, and those of a TOML file.

use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_advice::job::{JOBS, Job, JobNeed, Requirement};
use serde::Deserialize;

use crate::exit::Failure;
use crate::table::{Side, table};

/// A requirement with the words that ask for it, and the job that it belongs to.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) need: JobNeed,
    pub(crate) job: Option<String>,
}

impl Asked {
    pub(crate) fn new(text: &str, job: Option<String>) -> Result<Self, Failure> {
        let read = text.parse();
        let need = read.map_err(|error: hairspring_describe::DescriptionError| match &job {
            Some(job) => Failure::bad_request(format!("job {job}: {error}")),
            None => Failure::bad_request(error.to_string()),
        })?;
        Ok(Self { text: text.to_owned(), need, job })
    }

    /// A requirement that is about time.
    pub(crate) fn on_time(self) -> Result<(String, Requirement), Failure> {
        match self.need {
            JobNeed::OnTime(requirement) => Ok((self.text, requirement)),
            JobNeed::Record(_) => Err(Failure::bad_request(format!(
                "{}: ask `hairspring can` about a recording, with --watch for hours",
                self.text
            ))),
        }
    }
}

/// The jobs that a command line names.
#[derive(Args, Debug)]
pub(super) struct JobArguments {
    /// A ready-made job. May be repeated
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,
    /// A TOML file of jobs, each with a name and a list of its needs
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
}

impl JobArguments {
    /// These requirements, those of the ready-made jobs, and those of the file.
    pub(super) fn asked(&self, requirements: &[String]) -> Result<Vec<Asked>, Failure> {
        let mut asked = Vec::new();
        for text in requirements {
            asked.push(Asked::new(text, None)?);
        }
        for job in &self.job {
            asked.extend(built_in(job)?);
        }
        if let Some(file) = &self.jobs {
            asked.extend(of_file(file)?);
        }
        Ok(asked)
    }
}

/// The requirements of one text: the name of a ready-made job, a TOML file of jobs, or a requirement.
pub(crate) fn of(text: &str) -> Result<Vec<Asked>, Failure> {
    if text.ends_with(".toml") {
        of_file(Path::new(text))
    } else if text.contains(char::is_whitespace) {
        Ok(vec![Asked::new(text, None)?])
    } else {
        built_in(text)
    }
}

/// The requirements of a built-in job.
fn built_in(name: &str) -> Result<Vec<Asked>, Failure> {
    let Some(job) = Job::find(name) else {
        let names: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
        let text = format!("no job is called `{name}`: choose from {}, or write a requirement", names.join(", "));
        return Err(Failure::bad_request(text));
    };
    job.requirements.iter().map(|text| Asked::new(text, Some(job.name.to_owned()))).collect()
}

/// A file of jobs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<FileJob>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileJob {
    name: String,
    needs: Vec<String>,
}

/// The requirements of the jobs in a file.
fn of_file(file: &Path) -> Result<Vec<Asked>, Failure> {
    let wrong = |what: String| Failure::bad_request(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let jobs: File = toml::from_str(&text).map_err(|error| {
        wrong(format!("{error}\nwrite [[job]] with name = \"mine\" and needs = [\"loop 1kHz jitter 50us\"]"))
    })?;
    let mut asked = Vec::new();
    for job in &jobs.job {
        for needs in &job.needs {
            let one = Asked::new(needs, Some(job.name.clone()));
            asked.push(one.map_err(|failure| wrong(failure.text))?);
        }
    }
    Ok(asked)
}

/// The list of built-in jobs.
pub(crate) fn list(width: usize) -> String {
    let rows: Vec<Vec<String>> = JOBS
        .iter()
        .map(|job| {
            let about = format!("{}; {} ({})", job.about, job.requirements.join(" and "), job.source);
            vec![job.name.to_owned(), about]
        })
        .collect();
    table(&[("job", Side::Left), ("what it needs, and the source of the limit", Side::Left)], &rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_file_of_jobs() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/jobs.toml");
        assert_eq!(of_file(Path::new(file)).expect("jobs").len(), 3);
    }

    #[test]
    fn a_file_of_jobs_is_read_and_its_faults_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jobs.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("writable");
            of_file(&path).map(|asked| asked.iter().map(|one| one.text.clone()).collect::<Vec<_>>())
        };
        let good = read("[[job]]\nname = \"a\"\nneeds = [\"loop 1kHz jitter 50us\", \"react 1ms\"]\n").expect("jobs");
        assert_eq!(good.len(), 2);
        for (text, says) in [
            ("[[job]]\nname = \"a\"\nneeds = [\"loop 1kHz\"]\n", "job a: 'loop 1kHz': write `jitter`"),
            ("[[job]]\nname = \"a\"\n", "missing field `needs`"),
            ("job = 1", "write [[job]]"),
        ] {
            let failure = read(text).expect_err("no jobs");
            assert!(failure.text.contains(says) && failure.text.contains("jobs.toml"), "{}", failure.text);
        }
    }
}
