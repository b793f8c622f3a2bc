//! Chromium's log of its network requests (`--log-net-log`), reduced to those of a page.
//!
//! The browser makes requests of its own (time, updates), whose initiator is `not an origin`. A request counts whether
//! or not it was answered.

use serde_json::Value;

/// The initiator that Chromium logs for its own requests.
const NO_PAGE: &str = "not an origin";

/// The addresses that a page requested, or why the log cannot be read.
pub(crate) fn requests_of_pages(log: &str) -> Result<Vec<String>, String> {
    let log: Value = serde_json::from_str(log).map_err(|error| format!("the network log is incomplete: {error}"))?;
    let events = log["events"].as_array().ok_or("the network log has no events")?;
    let begun = events.iter().map(|event| &event["params"]).filter(|details| {
        details["url"].is_string() && details["initiator"].as_str().is_some_and(|initiator| initiator != NO_PAGE)
    });
    let mut addresses: Vec<String> = begun.filter_map(|details| details["url"].as_str().map(str::to_owned)).collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_begun_by_a_page_are_listed() {
        let log = r#"{"constants":{},"events":[
            {"type":1,"params":{"url":"https://browser.example/time","initiator":"not an origin"}},
            {"type":1,"params":{"url":"https://page.example/a.png","initiator":"null"}},
            {"type":2,"params":{"url":"https://page.example/a.png"}},
            {"type":3}]}"#;
        assert_eq!(requests_of_pages(log).unwrap(), ["https://page.example/a.png"]);
    }

    #[test]
    fn a_log_that_was_cut_off_is_an_error() {
        assert!(requests_of_pages(r#"{"events":[{"type":1}"#).is_err());
        assert!(requests_of_pages("{}").is_err());
    }
}
