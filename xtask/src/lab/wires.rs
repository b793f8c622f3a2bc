//! [`Wires`]: the wiring of the board's chip, on the host's side of the emulation.
//!
//! Over a socket (`-qtest`, here with an emulated processor) QEMU reports when the chip drives a line, and sets inputs
//! on request. Over another socket (QMP) it names the chip's place among its objects. Each output in [`WIRES`] is
//! connected with inputs, and each change of an output is recorded, in order.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// From which output to which input; several inputs of one output change in this order.
const WIRES: [(u8, u8); 3] = [(4, 0), (4, 1), (5, 2)];
/// The folder of QEMU's objects that the chip is in.
const OBJECTS: &str = "/machine/unattached";
const CHIP: &str = "child<pl061>";
/// Time limit for QEMU to start, and to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The sockets.
pub(super) struct Wires {
    lines: PathBuf,
    objects: PathBuf,
}

impl Wires {
    /// Sockets in this folder, whose path is short enough to bind.
    pub(super) fn new(folder: &Path) -> Wires {
        let wires = Wires { lines: folder.join("lines"), objects: folder.join("objects") };
        for socket in [&wires.lines, &wires.objects] {
            // Removes files of an earlier run.
            let _ = std::fs::remove_file(socket);
        }
        wires
    }

    /// Arguments for QEMU.
    pub(super) fn arguments(&self) -> Vec<String> {
        let socket = |path: &Path| format!("unix:{},server=on,wait=off", path.display());
        let words = ["-qtest", &socket(&self.lines), "-qtest-log", "/dev/null", "-qmp", &socket(&self.objects)];
        words.map(str::to_owned).into()
    }

    /// Connects lines until QEMU ends, and returns the changes of outputs: twice the line, plus one for a rising edge.
    pub(super) fn connect(&self) -> Result<Vec<u8>, String> {
        let chip = chip(&mut Talk::to(&self.objects)?)?;
        let mut lines = Talk::to(&self.lines)?;
        lines.say(&format!("irq_intercept_out {chip}"))?;
        let mut changes = Vec::new();
        // Ends with the machine.
        'machine: while let Some(line) = lines.hear() {
            let Some((output, is_high)) = change(&line) else { continue };
            changes.push(output << 1 | u8::from(is_high));
            for (_, input) in WIRES.iter().filter(|(from, _)| *from == output) {
                if lines.say(&format!("set_irq_in {chip} unnamed-gpio-in {input} {}", u8::from(is_high))).is_err() {
                    break 'machine;
                }
            }
        }
        Ok(changes)
    }
}

/// A change of an output: `IRQ raise 4`.
fn change(line: &str) -> Option<(u8, bool)> {
    let (what, number) = line.strip_prefix("IRQ ")?.split_once(' ')?;
    let number = number.trim().parse().ok()?;
    match what {
        "raise" => Some((number, true)),
        "lower" => Some((number, false)),
        _ => None,
    }
}

/// The chip's path.
fn chip(objects: &mut Talk) -> Result<String, String> {
    let mut ask = |request: Value| -> Result<Value, String> {
        objects.say(&request.to_string())?;
        loop {
            let line = objects.hear().ok_or("QEMU ended")?;
            let answer: Value = serde_json::from_str(&line).map_err(|error| format!("read QEMU's answer: {error}"))?;
            // Skips greetings and events.
            if answer.get("return").is_some() || answer.get("error").is_some() {
                return Ok(answer);
            }
        }
    };
    ask(json!({ "execute": "qmp_capabilities" }))?;
    let listed = ask(json!({ "execute": "qom-list", "arguments": { "path": OBJECTS } }))?;
    let entries = listed["return"].as_array().into_iter().flatten();
    let found = entries.filter(|entry| entry["type"] == CHIP).find_map(|entry| entry["name"].as_str());
    found.map(|name| format!("{OBJECTS}/{name}")).ok_or_else(|| format!("find a {CHIP} among QEMU's objects"))
}

/// A socket that sends and receives lines.
struct Talk {
    socket: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Talk {
    fn to(path: &Path) -> Result<Talk, String> {
        let begun = Instant::now();
        let failed = |error: std::io::Error| format!("connect to {}: {error}", path.display());
        loop {
            match UnixStream::connect(path) {
                Ok(socket) => {
                    let reader = BufReader::new(socket.try_clone().map_err(failed)?);
                    return Ok(Talk { socket, reader });
                }
                Err(error) if begun.elapsed() > PATIENCE => return Err(failed(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        self.socket.write_all(format!("{line}\n").as_bytes()).map_err(|error| format!("tell QEMU '{line}': {error}"))
    }

    /// The next line; `None` at the end.
    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_from_the_lines_that_tell_of_one() {
        assert_eq!(change("IRQ raise 4\n"), Some((4, true)));
        assert_eq!(change("IRQ lower 12"), Some((12, false)));
        for line in ["OK", "IRQ raise", "IRQ raise x", "FAIL Unknown device", ""] {
            assert_eq!(change(line), None, "{line}");
        }
    }
}
