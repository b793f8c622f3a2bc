//! The time that made files carry, so that the same sources make the same packages.

use std::process::Command;

use crate::library;
use crate::workspace::Workspace;

/// Seconds since 1970 that all made files carry: `SOURCE_DATE_EPOCH`, or the time of the last commit.
pub(crate) fn epoch(workspace: &Workspace) -> Result<i64, String> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = match given {
        Some(text) => text,
        None => library::run(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&workspace.root))
            .map_err(|why| format!("find the time of the sources ({why}); set SOURCE_DATE_EPOCH"))?,
    };
    text.trim().parse().map_err(|error| format!("read {:?} as seconds since 1970: {error}", text.trim()))
}

/// A time as mails and changelogs have it.
pub(crate) fn rfc_2822(epoch: i64) -> Result<String, String> {
    let time = jiff::Timestamp::from_second(epoch).map_err(|error| format!("read the time {epoch}: {error}"))?;
    Ok(time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_changelogs_have_them() {
        assert_eq!(rfc_2822(1_700_000_000).as_deref(), Ok("Tue, 14 Nov 2023 22:13:20 +0000"));
    }
}
