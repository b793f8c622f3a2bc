//! The arguments of `hairspring plan`.

use clap::{Args, ValueEnum};
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration};

#[derive(Args, Debug)]
#[command(after_help = "The exit code is 0 whatever the verdict: it is in the output.")]
pub(crate) struct PlanArguments {
    /// A card with its rate, for instance virtual:4ch,14bit,40MS/s; once for each
    #[arg(long, value_name = "CARD", required = true)]
    pub(crate) card: Vec<String>,
    /// The folders to record to, striped over all of them; or disks of the topology
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) to: Vec<String>,
    /// Plan the way back, from the disks to the cards
    #[arg(long)]
    pub(crate) play: bool,
    /// How long, for instance 10min or 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) span: Option<Nanos>,
    /// The worst stall of the disks that the buffers have to outlast twice [default: 250 ms, assumed]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) stall: Option<Nanos>,
    /// What the disks sustain: a sheet with the chapter Transfer, as a JSON file, or the name of a historic one
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) sheet: Option<String>,
    /// The links and buses: a JSON file (hairspring.topology/1), or one of an006-shared-pcix, an006-own-pcix,
    /// an006-shared-pci, an006-own-bus [default: what the kernel tells of this computer]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) topology: Option<String>,
    /// Show the plan beside that with a device elsewhere, for instance "move card0 to SEGMENT"; may be repeated
    #[arg(long, value_name = "CHANGE")]
    pub(crate) what_if: Vec<String>,
    /// What else moves meanwhile, for instance "net0>memory:110MB/s"; may be repeated
    #[arg(long, value_name = "FLOW")]
    pub(crate) also: Vec<String>,
    /// The units of the text
    #[arg(long, value_enum, default_value_t = Units::Si)]
    pub(crate) units: Units,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

/// The units of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Units {
    /// MB of 1,000,000 bytes with MiB beside it
    Si,
    /// MB of 1,048,576 bytes, as application note AN006 has it
    An006,
}
