//! The promises of the sheet, in one binary.
#![expect(clippy::unwrap_used, reason = "a test that unwraps nothing fails, which is its purpose")]

mod compare;
mod comparison;
mod diagram;
mod difference;
mod drift;
mod example;
mod gate;
mod html;
mod incident;
mod json;

mod markdown;
mod overlay;
mod quantity;
mod real;
mod rounds;
mod samples;
mod simulation;
mod stamp;
mod statistics;
mod text;
mod trend;
