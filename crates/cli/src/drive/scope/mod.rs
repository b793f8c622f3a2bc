//! `hairspring scope`: watches the lines of a virtual board, or a recording that runs.

mod board;
mod http;
mod live;
mod picture;
mod serve;
mod spectrum;
mod watch;

use std::net::SocketAddr;

use clap::{ArgGroup, Args};
use hairspring_device::DeviceDescription;
use hairspring_tap::TapPlace;
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration, parsed};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "scope",
    examples: &[
        Example {
            does: "Watch a virtual board for a second, and keep the edges for GTKWave",
            line: "hairspring scope --device virtual:/dev/shm/board --for 1s --out board.vcd",
        },
        Example {
            does: "Watch a recording that runs with --tap adc, until Ctrl-C or its end",
            line: "hairspring scope --live adc",
        },
        Example {
            does: "Serve a page that draws it in a browser",
            line: "hairspring scope --live adc --serve 127.0.0.1:8000",
        },
        Example {
            does: "Draw the next ten seconds of it, and print the picture",
            line: "hairspring scope --live adc --for 10s --span 10s > picture.txt",
        },
    ],
    files: &[
        super::BOARD,
        ("$XDG_RUNTIME_DIR/hairspring/NAME.tap", "the socket of a recording; else in /run/hairspring"),
    ],
    environment: &[("XDG_RUNTIME_DIR", "where the sockets of taps lie, in its folder hairspring")],
};

/// The shortest and the longest time that a picture covers.
const SPAN_LEAST: Nanos = Nanos::from_micros(1);
const SPAN_MOST: Nanos = Nanos::from_secs(86_400);

/// Watch the lines of a virtual board, or a recording that runs
///
/// A recording is drawn while it runs, from its ring: wave forms, spectrum and levels. That costs the recording
/// nothing.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("watched").required(true).args(["device", "live"])))]
pub(crate) struct Arguments {
    /// Virtual board to watch; a board that does not exist is created
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<DeviceDescription>)]
    device: Option<DeviceDescription>,
    /// Recording to watch: the name or path that `record --tap` gave it
    #[arg(long, value_name = "NAME", value_parser = parsed::<TapPlace>)]
    live: Option<TapPlace>,
    /// How long to watch; Ctrl-C ends it earlier [default: 1s; a recording on a terminal until its end]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    length: Option<Nanos>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
    #[command(flatten)]
    board: board::BoardArguments,
    /// Time that the picture of a recording covers
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s", conflicts_with = "device")]
    #[arg(allow_hyphen_values = true, help_heading = "Recording")]
    span: Nanos,
    /// Serve a page that draws the recording in a browser, until the recording ends; port 0 takes a free one
    ///
    /// Every user of that address sees the recording: there is no password. Other computers reach 127.0.0.1 through ssh
    /// -L only.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["device", "format"], help_heading = "Recording")]
    serve: Option<SocketAddr>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.length.is_some_and(|length| length <= Nanos::ZERO) {
        return Err(Failure::bad_request("--for 0s: write how long to watch, for instance 1s"));
    }
    if !(SPAN_LEAST..=SPAN_MOST).contains(&arguments.span) {
        return Err(Failure::bad_request("--span: write 1us to 86400s, for instance 100ms"));
    }
    let format = arguments.format;
    match (&arguments.device, &arguments.live) {
        (Some(device), _) => {
            let length = arguments.length.unwrap_or(Nanos::from_secs(1));
            board::run(&board::Request { device: device.clone(), length, format, more: arguments.board.clone() })
        }
        (None, Some(place)) => {
            let (place, length, span) = (place.clone(), arguments.length, arguments.span);
            let request = live::Request { place, length, span, format };
            match arguments.serve {
                Some(address) => serve::run(&request, address),
                None => live::run(&request),
            }
        }
        // The parser asks for one of them.
        (None, None) => Err(Failure::bad_request("write --device DEVICE or --live NAME")),
    }
}
