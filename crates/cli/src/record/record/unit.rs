//! `--unit`: a systemd unit that makes a recording a service.

use std::path::Path;

use super::Arguments;
use crate::exit::Failure;

/// The unit for this command line. It goes on with the series after each start.
pub(super) fn text(arguments: &Arguments) -> Result<String, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("failed to find this program: {error}")))?;
    let folder =
        std::env::current_dir().map_err(|error| Failure::failed(format!("failed to find this folder: {error}")))?;
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--unit").collect();
    let name = arguments.to.first().and_then(|to| to.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    Ok(unit(&program, &folder, &given, &name))
}

fn unit(program: &Path, folder: &Path, given: &[String], name: &str) -> String {
    let mut words = vec![program.display().to_string()];
    words.extend(given.iter().cloned());
    for more in ["--resume", "--quiet"] {
        if !given.iter().any(|argument| argument == more) {
            words.push(more.to_owned());
        }
    }
    let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!(
        "# hairspring-{name}.service: copy to /etc/systemd/system, then: systemctl enable --now hairspring-{name}\n\
         [Unit]\n\
         Description=Recording {name}\n\
         Wants=time-sync.target\n\
         After=local-fs.target network-online.target time-sync.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         WorkingDirectory={}\n\
         ExecStart={}\n\
         # The first signal ends the recording in order.\n\
         KillSignal=SIGINT\n\
         TimeoutStopSec=120\n\
         Restart=always\n\
         RestartSec=1\n\
         LimitMEMLOCK=infinity\n\
         LimitRTPRIO=99\n\
         LimitNOFILE=65536\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        escaped(&folder.display().to_string()),
        line.join(" ")
    )
}

/// A word of a command line as systemd reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("\"{}\"", escaped(word).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$"))
}

/// Specifiers begin with a percent sign.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_goes_on_after_a_restart_and_its_words_are_quoted() {
        let given =
            ["record", "--card", "virtual:1ch,16bit,1MS/s", "--to", "my run", "--segment", "10%"].map(str::to_owned);
        let unit = unit(Path::new("/usr/bin/hairspring"), Path::new("/data/a b"), &given, "run");
        let line = unit.lines().find(|line| line.starts_with("ExecStart=")).expect("a command");
        assert_eq!(
            line,
            "ExecStart=/usr/bin/hairspring record --card virtual:1ch,16bit,1MS/s --to \"my run\" --segment \"10%%\" --resume --quiet"
        );
        assert!(unit.contains("KillSignal=SIGINT\n") && unit.contains("WorkingDirectory=/data/a b\n"), "{unit}");
        assert_eq!(quoted("a\"b$c"), "\"a\\\"b$$c\"");
    }
}
