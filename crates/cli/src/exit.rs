//! The exit codes: one table, which generates the documentation and the manual pages.

use std::fmt::Display;

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failed,
    BadRequest,
    AllAbsent,
    Loss,
    Unreadable,
    GateFailed,
    NoData,
    GateUndecided,
    Disturbed,
    Cannot,
    NotShown,
    OutOfSpace,
    Owned,
    NotSet,
    CannotRun,
    NotFound,
    Interrupted,
    /// With the exit code of the program that `run` started.
    Program(u8),
}

/// A code and its meaning.
struct Row {
    exit: Exit,
    code: u8,
    /// Its general meaning.
    meaning: &'static str,
    /// Its meaning for single commands.
    of: &'static [(&'static str, &'static str)],
}

/// Every exit. The first three can end every command, the others only those that they name.
const TABLE: [Row; 18] = [
    Row {
        exit: Exit::Success,
        code: 0,
        meaning: "success",
        of: &[
            ("sheet", "at least one requested figure was measured"),
            ("can", "every answer is yes"),
            ("soak", "every answer is yes, or nothing was asked"),
            ("plan", "yes: the set-up carries the recording, with a margin"),
            ("record", "the recording is complete, or was stopped without loss"),
            ("play", "every frame was played, or playing was stopped"),
            ("verify", "every byte is as written, and none is missing"),
            ("recover", "the recording is in order, and no frame is missing"),
            ("join", "the joined recording is complete"),
            ("export", "the piece is written, and no frame of it is lost"),
        ],
    },
    Row {
        exit: Exit::Failed,
        code: 1,
        meaning: "failure that no other code names",
        of: &[
            ("serve", "a unit failed, or a device may not be in its safe state"),
            ("expose", "an instrument did not answer, or its answer took longer than the exposure"),
        ],
    },
    Row {
        exit: Exit::BadRequest,
        code: 2,
        meaning: "bad request: nothing was measured, recorded or driven; the message says what to write instead",
        of: &[],
    },
    Row {
        exit: Exit::AllAbsent,
        code: 3,
        meaning: "every requested figure is absent",
        of: &[("sheet", "the sheet was printed, with a reason for each absent figure")],
    },
    Row {
        exit: Exit::Loss,
        code: 4,
        meaning: "data were lost",
        of: &[
            ("record", "the recording is incomplete; its gaps are declared, and everything else is good"),
            ("play", "frames came too late for the output, or are in damaged blocks"),
            ("verify", "the recording has declared gaps; all other data are as written"),
            ("recover", "the recording is in order, with declared gaps"),
            ("join", "the joined recording has declared gaps"),
            ("export", "the piece is written, but frames of it are missing, or the recording has no end"),
            ("maxrate", "data were lost at every rate"),
        ],
    },
    Row {
        exit: Exit::Unreadable,
        code: 5,
        meaning: "the recording cannot be read, or some of its bytes are unaccounted for",
        of: &[
            ("record", ""),
            ("play", ""),
            ("verify", ""),
            ("recover", ""),
            ("join", ""),
            ("export", ""),
            ("compress", ""),
        ],
    },
    Row {
        exit: Exit::GateFailed,
        code: 6,
        meaning: "a limit of --fail-if was exceeded",
        of: &[("compare", "with 95 %; or a figure has vanished; with --strict also if a limit could not be decided")],
    },
    Row {
        exit: Exit::NoData,
        code: 7,
        meaning: "the time of --wait passed before the first data came",
        of: &[("record", "")],
    },
    Row {
        exit: Exit::GateUndecided,
        code: 8,
        meaning: "a limit of --fail-if could neither be shown to be exceeded nor to be kept",
        of: &[("compare", "without --strict and --lenient; no other limit failed")],
    },
    Row {
        exit: Exit::Disturbed,
        code: 9,
        meaning: "no result: the machine was disturbed during more than a fifth of the pairs",
        of: &[("ab", "")],
    },
    Row {
        exit: Exit::Cannot,
        code: 10,
        meaning: "no: this computer does not meet the request",
        of: &[
            ("can", "at least one answer is no"),
            ("soak", "at least one answer is no"),
            ("plan", "a disk, bus or link cannot carry it"),
        ],
    },
    Row {
        exit: Exit::NotShown,
        code: 11,
        meaning: "not shown: the evidence decides neither yes nor no",
        of: &[
            ("can", "at least one requirement is not shown, and none is answered with no"),
            ("soak", "at least one requirement is not shown, and none is answered with no"),
            ("plan", "no margin is left, or a figure is missing"),
            ("doctor", "the unchanged computer differs from itself, so there is no conclusion"),
        ],
    },
    Row {
        exit: Exit::OutOfSpace,
        code: 12,
        meaning: "ended before its time, in order and without loss, because too little space was free",
        of: &[("record", "less than --free, or not enough for the next segment")],
    },
    Row {
        exit: Exit::Owned,
        code: 13,
        meaning: "another process owns the recording, or nobody can own it because its file system has no locks; nothing was changed",
        of: &[
            ("record", "with --resume, or another recorder has this name"),
            ("recover", ""),
            ("join", ""),
            ("compress", ""),
            ("keep", "the segment is being deleted"),
        ],
    },
    Row {
        exit: Exit::NotSet,
        code: 125,
        meaning: "the request was refused, and the program was not started",
        of: &[
            ("run", "any other code is that of the program; 128 + n if signal n ended it"),
            ("watch", "the kernel's records cannot be read; any other code is that of the program"),
        ],
    },
    Row { exit: Exit::CannotRun, code: 126, meaning: "the program cannot be run", of: &[("run", ""), ("watch", "")] },
    Row { exit: Exit::NotFound, code: 127, meaning: "the program was not found", of: &[("run", ""), ("watch", "")] },
    Row {
        exit: Exit::Interrupted,
        code: 130,
        meaning: "interrupted by Ctrl-C, SIGTERM, SIGQUIT or SIGHUP",
        of: &[
            ("sheet", "the figures measured so far were printed"),
            ("can", "the answers that were found are shown"),
            ("soak", "the result until then is shown, and is in the sheet"),
            ("doctor", "the result of the complete blocks is shown"),
            ("delay", "the delays that were made are shown"),
            ("record", "at a second signal more than half a second later; the first one ends the recording in order"),
            ("play", "at a second signal more than half a second later; the first one ends playing in order"),
            ("maxrate", "no rate was confirmed"),
            ("pulse", "the line is in its safe state"),
            ("scope", "at a second signal more than half a second later; the first one ends watching"),
            ("expose", "the shutter is closed"),
            ("serve", "every device is in its safe state"),
        ],
    },
];

impl Row {
    /// Whether every command can end so.
    fn is_common(&self) -> bool {
        matches!(self.exit, Exit::Success | Exit::Failed | Exit::BadRequest)
    }
}

impl Exit {
    /// Its code.
    pub(crate) fn code(self) -> u8 {
        if let Self::Program(code) = self {
            return code;
        }
        TABLE.iter().find(|row| row.exit == self).map_or(1, |row| row.code)
    }
}

/// The reason of a failure, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

impl Failure {
    /// An invalid request.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self { exit: Exit::BadRequest, text: text.into() }
    }

    /// A library's error.
    pub(crate) fn failed_to(error: impl Display) -> Self {
        Self::failed(format!("failed to {error}"))
    }

    /// Any other failure.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, text: text.into() }
    }
}

/// The codes of a command, with their meanings.
pub(crate) fn codes_of(command: &str) -> Vec<(u8, String)> {
    let meaning = |row: &Row| {
        let own = row.of.iter().find(|(name, _)| *name == command).map(|(_, own)| *own);
        match own {
            Some("") => Some(row.meaning.to_owned()),
            Some(own) => Some(format!("{}: {own}", row.meaning)),
            None => row.is_common().then(|| row.meaning.to_owned()),
        }
    };
    TABLE.iter().filter_map(|row| Some((row.code, meaning(row)?))).collect()
}

/// The commands that the table names.
#[cfg(test)]
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| row.of).map(|(name, _)| *name)
}

/// All codes with their general meaning.
pub(crate) fn codes() -> impl Iterator<Item = (u8, &'static str)> {
    TABLE.iter().map(|row| (row.code, row.meaning))
}

/// The table as Markdown.
pub(crate) fn table() -> String {
    let mut text =
        "# Exit codes\n\nCodes 0, 1 and 2 can end every command, the others only the commands that they name.\n\n\
                    | code | meaning | for single commands |\n| ---: | --- | --- |\n"
            .to_owned();
    for row in &TABLE {
        let own = |(name, own): &(&str, &str)| match *own {
            "" => format!("`{name}`"),
            own => format!("`{name}`: {own}"),
        };
        let own: Vec<String> = row.of.iter().map(own).collect();
        text.push_str(&format!("| {} | {} | {} |\n", row.code, row.meaning, own.join("<br>")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_a_code_of_its_own() {
        let mut codes: Vec<u8> = TABLE.iter().map(|row| row.exit.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 125, 126, 127, 130]);
    }

    #[test]
    fn a_command_has_the_common_codes_and_its_own() {
        let codes = |command| codes_of(command).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
        assert_eq!(codes("clock"), [0, 1, 2]);
        assert_eq!(codes("record"), [0, 1, 2, 4, 5, 7, 12, 13, 130]);
        assert_eq!(codes_of("record")[0].1, "success: the recording is complete, or was stopped without loss");
    }
}
