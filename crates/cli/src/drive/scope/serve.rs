//! `hairspring scope --live NAME --serve ADDRESS`: a page that draws the recording in a browser.
//!
//! This program reads the tap all the time and keeps the extremes of each piece of time; a browser asks for the pieces
//! that it lacks. So no spike is lost between two questions, and a browser that asks too seldom finds a hole, not an
//! old picture.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hairspring_ring::Frames;
use hairspring_tap::TapState;
use serde_json::{Value, json};

use super::http::{self, Answer};
use super::live::{Request, gone, title};
use super::watch::{Watch, full_scale};
use crate::exit::{Exit, Failure};
use crate::record::record::levels::decibels;
use crate::{interrupt, output};

/// The page. Everything that it needs is in it.
const PAGE: &str = include_str!("page.html");
/// Points that cover the span: the columns of a wide window.
const POINTS: usize = 1000;
/// Channels that a browser gets.
const CHANNELS_MOST: usize = 16;
/// Lines of a spectrum for a browser: the highest of each group.
const LINES_MOST: usize = 512;
/// Time for which the page stays after the end of the stream, so that browsers see the end.
const AFTER: Duration = Duration::from_secs(2);
/// The longest wait for new frames.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(request: &Request, address: SocketAddr) -> Result<Exit, Failure> {
    let stop = interrupt::watch()?;
    let watch = Watch::open(&request.place, request.span, POINTS)?;
    let title = title(&request.place, &watch);
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::bad_request(format!("failed to serve {address}: {error}; write another address or port"))
    })?;
    let local =
        listener.local_addr().map_err(|error| Failure::failed(format!("failed to serve {address}: {error}")))?;
    output::print(&format!("http://{local}/\n"))?;
    let watch: &'static Mutex<Watch> = Box::leak(Box::new(Mutex::new(watch)));
    let answering = std::thread::Builder::new().name("browsers".to_owned()).spawn(move || {
        // It ends with the process.
        http::serve(&listener, &|request| answer(&request.target, watch, &title))
    });
    answering.map_err(|error| Failure::failed(format!("failed to start a thread for browsers: {error}")))?;
    match follow(request, watch, &stop) {
        TapState::Gone => Err(Failure::failed(gone(&request.place))),
        _ => Ok(Exit::Success),
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until the stream has ended, the time is over or `stop` is set.
fn follow(request: &Request, watch: &Mutex<Watch>, stop: &AtomicBool) -> TapState {
    let begun = Instant::now();
    let length = request.length.and_then(|length| Duration::try_from(length).ok());
    let mut ended: Option<Instant> = None;
    loop {
        let (came, state) = {
            let mut watch = lock(watch);
            (watch.read(), watch.state())
        };
        if state != TapState::Running && !came {
            ended.get_or_insert_with(Instant::now);
        }
        let over =
            length.is_some_and(|length| begun.elapsed() >= length) || ended.is_some_and(|at| at.elapsed() >= AFTER);
        // Relaxed: a plain flag.
        if over || stop.load(Ordering::Relaxed) {
            return state;
        }
        if !came {
            // Without the lock.
            std::thread::sleep(LOOK / 5);
        }
    }
}

/// The answer to a request.
fn answer(target: &str, watch: &Mutex<Watch>, title: &str) -> Answer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => Answer { status: "200 OK", kind: "text/html; charset=utf-8", body: PAGE.as_bytes().to_vec() },
        "/trace" => {
            let from = query.split('&').find_map(|part| part.strip_prefix("from=")?.parse().ok()).unwrap_or(0);
            let value = trace(&mut lock(watch), title, from);
            Answer { status: "200 OK", kind: "application/json", body: value.to_string().into_bytes() }
        }
        _ => Answer::text("404 Not Found", "there is / and /trace"),
    }
}

/// The points from a number on, and the counts.
fn trace(watch: &mut Watch, title: &str, from: u64) -> Value {
    let channels = watch.channels().len().min(CHANNELS_MOST);
    let described = watch.channels()[..channels].to_vec();
    let points: Vec<Value> = watch
        .trace()
        .complete_from(from)
        .map(|point| {
            let extremes = point.extremes.iter().zip(&described).map(|(extremes, channel)| {
                let (low, high) = (channel.value(extremes.0), channel.value(extremes.1));
                [low.min(high), low.max(high)]
            });
            json!([point.number, extremes.collect::<Vec<_>>()])
        })
        .collect();
    let layout = watch.layout();
    let picture = watch.levels();
    let shown: Vec<Value> = (0..channels)
        .map(|number| {
            let level = picture.channels.get(number).filter(|_| picture.frames.0 > 0);
            let lines = watch.spectrum(number).map(|lines| {
                let group = lines.len().div_ceil(LINES_MOST).max(1);
                let highest = lines.chunks(group).map(|group| group.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                highest.map(|level| (level * 10.0).round() / 10.0).collect::<Vec<_>>()
            });
            json!({
                "name": described[number].name,
                "unit": described[number].unit(),
                "level_db": level.and_then(|level| decibels(layout, level.mean, level.rms)),
                "full_scale": full_scale(layout),
                "spectrum_db": lines,
            })
        })
        .collect();
    let rate = watch.reader().rate();
    let per_point = watch.trace().frames_per_point();
    json!({
        "title": title,
        "state": watch.state().name(),
        "read_frames": watch.seen().0,
        "missed_frames": watch.reader().missed().0,
        "lost_frames": watch.lost().map(|lost| lost.0),
        "rate_hz": rate.map(hairspring_ring::SampleRate::as_hz),
        "points_of_span": POINTS,
        "point_ns": rate.map(|rate| rate.time_of(Frames(per_point.0)).count()),
        "points": points,
        "channels": shown,
    })
}
