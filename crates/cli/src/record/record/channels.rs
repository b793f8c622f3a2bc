//! Descriptions of the channels by the user: `--channel`, or a set-up file.

use std::path::PathBuf;

use clap::Args;
use hairspring_recording::channels::{ChannelDescription, file, written};
use hairspring_ring::Layout;

use crate::exit::Failure;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChannelArguments {
    /// What a channel measures, for instance 0=name:pressure,unit:kPa,scale:0.02. May be repeated
    ///
    /// The channel's number, then parts: name, unit (UCUM), scale and offset (value = code x scale + offset),
    /// range:-10..10 in the unit, clip:-8192..8191 in codes, justified:high, coupling, sensor, calibrated, by,
    /// uncertainty, note. What is not said is unknown, never 1. With several cards write 1/0= for channel 0 of card 1.
    #[arg(long = "channel", value_name = "N=KEY:VALUE,...", conflicts_with = "file", help_heading = "Channels")]
    channels: Vec<String>,
    /// File that says the same in TOML, a table [channel.0] for each channel
    #[arg(long = "channels", id = "file", value_name = "FILE.toml", help_heading = "Channels")]
    file: Option<PathBuf>,
}

impl ChannelArguments {
    /// The channels of each card, checked against its layout.
    pub(crate) fn read(&self, layouts: &[Layout]) -> Result<Vec<Vec<ChannelDescription>>, Failure> {
        let Some(path) = &self.file else {
            let read = written::read(&self.channels, layouts);
            return read.map_err(|error| Failure::bad_request(format!("--channel {error}")));
        };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::bad_request(format!("failed to read {shown}: {error}; name a file for --channels"))
        })?;
        file::read(&text, layouts).map_err(|error| Failure::bad_request(format!("{shown}: {error}")))
    }
}
