//! Outcomes of the checks: how many passed, which failed and why, which were skipped and why.
//!
//! A skip says whether this machine could have run the check. On a CI machine (`CI=true`) such a skip becomes a
//! failure, so that no check drops out unnoticed.
//!
//! Checks on a shared machine can fail because the host stopped it for a while. A check that failed and passed when it
//! was tried again is unsteady: it counts as passed, and the report names it with what it said when it failed.

/// Outcomes of one step, or of all of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failures: Vec<Failure>,
    /// What failed at first and passed when it was tried again.
    pub(crate) unsteady: Vec<Failure>,
    pub(crate) skips: Vec<Skip>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) why: String,
    /// The end of the log; empty if `why` is sufficient.
    pub(crate) tail: String,
}

#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Whether this machine could run it after a setup.
    pub(crate) could_run: bool,
}

impl Tally {
    pub(crate) fn pass() -> Tally {
        Tally { passed: 1, ..Tally::default() }
    }

    pub(crate) fn fail(name: &str, why: impl Into<String>, tail: impl Into<String>) -> Tally {
        let mut tally = Tally::default();
        tally.failure(name, why, tail);
        tally
    }

    pub(crate) fn skip(name: &str, reason: impl Into<String>, could_run: bool) -> Tally {
        let skip = Skip { name: name.to_owned(), reason: reason.into(), could_run };
        Tally { skips: vec![skip], ..Tally::default() }
    }

    /// Adds one failed check.
    pub(crate) fn failure(&mut self, name: &str, why: impl Into<String>, tail: impl Into<String>) {
        self.failures.push(Failure { name: name.to_owned(), why: why.into(), tail: tail.into() });
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.unsteady.extend(other.unsteady);
        self.skips.extend(other.skips);
    }

    /// These outcomes, of a second try, after those of the first: what failed only at first is unsteady.
    pub(crate) fn after(mut self, first: Tally) -> Tally {
        let still: Vec<String> = self.failures.iter().map(|failure| failure.name.clone()).collect();
        let once = first.failures.into_iter().filter(|failure| !still.contains(&failure.name));
        self.unsteady.extend(first.unsteady.into_iter().chain(once));
        self
    }

    /// In CI, a skip of a check that this machine could run is a failure.
    pub(crate) fn hold_to_ci(&mut self) {
        let (avoidable, fair): (Vec<Skip>, Vec<Skip>) = self.skips.drain(..).partition(|skip| skip.could_run);
        self.skips = fair;
        for skip in avoidable {
            self.failure(&skip.name, format!("skipped in CI although it could run: {}", skip.reason), "");
        }
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.failures.is_empty()
    }

    /// The one line that ends a run.
    pub(crate) fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failures.len(), self.skips.len())
    }

    /// The skips with their reasons; what was unsteady, and the failures, with the ends of their logs.
    pub(crate) fn details(&self) -> String {
        let mut text = String::new();
        for skip in &self.skips {
            text += &format!("skipped  {}: {}\n", skip.name, skip.reason);
        }
        let told = |mark: &'static str, failures: &[Failure]| {
            let one = |failure: &Failure| {
                let tail: String = failure.tail.lines().map(|line| format!("         | {line}\n")).collect();
                format!("{mark} {}: {}\n{tail}", failure.name, failure.why)
            };
            failures.iter().map(one).collect::<String>()
        };
        text += &told("UNSTEADY (failed, and passed when tried again)", &self.unsteady);
        text += &told("FAILED  ", &self.failures);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_all_three() {
        let mut tally = Tally::pass();
        tally.add(Tally { passed: 41, ..Tally::default() });
        tally.add(Tally::fail("clippy", "exit status 101", "error: it"));
        tally.add(Tally::skip("html", "no chromium", false));
        assert_eq!(tally.closing_line(), "42 passed, 1 failed, 1 skipped");
        assert!(!tally.succeeded());
        let details = tally.details();
        assert!(details.contains("skipped  html: no chromium") && details.contains("| error: it"), "{details}");
    }

    #[test]
    fn what_failed_only_at_first_is_told_and_does_not_fail_the_run() {
        let mut first = Tally::fail("delay.c", "exit status 1", "late");
        first.failure("header.cpp", "exit status 1", "");
        let mut second = Tally { passed: 7, ..Tally::default() };
        second.failure("header.cpp", "exit status 1", "");
        let told = second.after(first);
        assert_eq!(told.closing_line(), "7 passed, 1 failed, 0 skipped");
        assert!(!told.succeeded() && told.details().contains("UNSTEADY (failed, and passed when tried again) delay.c"));
        let steady = Tally::pass().after(Tally::fail("delay.c", "exit status 1", "late"));
        assert!(steady.succeeded() && steady.details().contains("| late"), "{}", steady.details());
    }

    #[test]
    fn ci_forgives_only_the_skips_it_could_not_avoid() {
        let mut tally = Tally::skip("html", "chromium is not installed", true);
        tally.add(Tally::skip("windows", "this is Linux", false));
        tally.hold_to_ci();
        assert_eq!(tally.closing_line(), "0 passed, 1 failed, 1 skipped");
        assert_eq!(tally.failures[0].name, "html");
    }
}
