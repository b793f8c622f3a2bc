//! Completions and the man page, from the declaration of the arguments.

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "hairspring", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}

pub(crate) fn man() -> Result<Exit, Failure> {
    let mut command = Arguments::command();
    command.build();
    let mut text = Vec::new();
    let failed = |error: std::io::Error| Failure::failed(format!("write the man page: {error}"));
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(failed)?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let page = clap_mangen::Man::new(subcommand.clone());
        page.render_options_section(&mut text).map_err(failed)?;
        let name = subcommand.get_name();
        // The section's own heading says only "OPTIONS".
        let heading = format!(".SH \"OPTIONS OF {}\"", name.to_uppercase());
        let page = String::from_utf8_lossy(&text).into_owned();
        if let Some(at) = page.rfind(".SH OPTIONS") {
            text = format!("{}{heading}{}", &page[..at], &page[at + ".SH OPTIONS".len()..]).into_bytes();
        }
    }
    output::print(&String::from_utf8_lossy(&text))
}
