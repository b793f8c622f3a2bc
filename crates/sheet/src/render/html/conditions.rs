//! The conditions as tables, one for each group of facts, and the threads behind a fold.

use super::{Markup, absent, missing};
use crate::render::quantity;
use crate::render::svg::escaped;
use crate::{Conditions, FactValue, SheetFact, ThreadRow, Unit};

pub(super) fn conditions(page: &mut Markup, conditions: &Conditions) {
    page.add(format_args!(
        "<section class=\"chapter\" id=\"conditions\">\n<h2>Conditions</h2>\n\
         <p class=\"intro\">The state of the machine when the sheet was taken.</p>\n<div class=\"groups\">\n"
    ));
    for name in groups(conditions) {
        page.add(format_args!(
            "<div class=\"group\">\n<h3>{}</h3>\n<table class=\"facts\">\n",
            escaped(&heading(name))
        ));
        for fact in conditions.facts.iter().filter(|f| group(f) == name) {
            let value = match &fact.value {
                FactValue::Value(value) => escaped(value),
                FactValue::Absent(reason) => absent(reason),
            };
            page.add(format_args!(
                "<tr title=\"{}\"><th scope=\"row\">{}</th><td>{value}</td></tr>\n",
                escaped(&fact.id),
                escaped(&fact.label)
            ));
        }
        page.add(format_args!("</table>\n</div>\n"));
    }
    page.add(format_args!("</div>\n"));
    threads(page, conditions);
    page.add(format_args!("</section>\n"));
}

/// The groups in the order in which the sheet first has them.
fn groups(conditions: &Conditions) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for fact in &conditions.facts {
        if !names.contains(&group(fact)) {
            names.push(group(fact));
        }
    }
    names
}

/// The part of the id before its first dot.
fn group(fact: &SheetFact) -> &str {
    fact.id.split('.').next().unwrap_or_default()
}

/// The group's name as a heading.
fn heading(group: &str) -> String {
    let mut letters = group.chars();
    match (group, letters.next()) {
        ("cpu", _) => "CPU".to_owned(),
        (_, Some(first)) => first.to_uppercase().chain(letters).collect(),
        (_, None) => String::new(),
    }
}

fn threads(page: &mut Markup, conditions: &Conditions) {
    if let Some(reason) = &conditions.threads_absent {
        let what = if conditions.threads.is_empty() { "absent" } else { "not whole" };
        page.add(format_args!("<p class=\"below\">Threads: {}</p>\n", missing(what, reason)));
    }
    if conditions.threads.is_empty() {
        return;
    }
    page.add(format_args!(
        "<details>\n<summary>{} threads</summary>\n<div class=\"scroll\" tabindex=\"0\">\n<table class=\"threads\">\n\
         <thead><tr><th>pid</th><th>tid</th><th class=\"text\">name</th><th class=\"text\">policy</th><th>priority</th>\
         <th>CPU time</th></tr></thead>\n",
        conditions.threads.len()
    ));
    for ThreadRow { pid, tid, name, policy, rt_priority, cpu_ms } in &conditions.threads {
        let name = name.as_deref().map_or("<span class=\"none\">–</span>".to_owned(), escaped);
        let used = quantity(*cpu_ms as f64 * 1e6, Unit::Ns);
        page.add(format_args!(
            "<tr><td>{pid}</td><td>{tid}</td><td class=\"text\">{name}</td><td class=\"text\">{}</td><td>{rt_priority}</td><td>{used}</td></tr>\n",
            escaped(policy)
        ));
    }
    page.add(format_args!("</table>\n</div>\n</details>\n"));
}
