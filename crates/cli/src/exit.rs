//! The exit codes: one table, from which the documentation is made.

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failed,
    BadRequest,
    AllAbsent,
    Loss,
    Unreadable,
    GateFailed,
    Interrupted,
}

/// Every exit with its code and meaning.
const TABLE: [(Exit, u8, &str); 8] = [
    (
        Exit::Success,
        0,
        "done; a sheet has at least one of the requested figures; a recording is complete, or was stopped without \
         loss; a plan was made, whatever its verdict",
    ),
    (Exit::Failed, 1, "any failure that is not named below"),
    (Exit::BadRequest, 2, "bad request: nothing was measured or recorded; the message says what to write instead"),
    (Exit::AllAbsent, 3, "the sheet was made, but every requested figure is absent, each with its reason"),
    (
        Exit::Loss,
        4,
        "the recording is incomplete; what is missing is declared, and everything else is good; `maxrate`: something was \
         lost at every rate",
    ),
    (Exit::Unreadable, 5, "the recording cannot be read, or its bytes are not all accounted for"),
    (Exit::GateFailed, 6, "`compare --fail-if`: a gate failed"),
    (
        Exit::Interrupted,
        130,
        "interrupted (Ctrl-C, SIGTERM, SIGQUIT, SIGHUP); what was measured until then was printed; a recording only \
         at the second time",
    ),
];

impl Exit {
    /// Its code.
    pub(crate) fn code(self) -> u8 {
        TABLE.iter().find(|(exit, _, _)| *exit == self).map_or(1, |(_, code, _)| *code)
    }
}

/// Why the command failed and how it ends.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

impl Failure {
    /// A request that cannot be served as it was written.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self { exit: Exit::BadRequest, text: text.into() }
    }

    /// Anything else.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, text: text.into() }
    }
}

/// The table as Markdown.
pub(crate) fn table() -> String {
    let mut text = "# Exit codes\n\n| code | meaning |\n| ---: | --- |\n".to_owned();
    for (_, code, meaning) in TABLE {
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_a_code_of_its_own() {
        let mut codes: Vec<u8> = TABLE.iter().map(|(exit, ..)| exit.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 130]);
    }
}
