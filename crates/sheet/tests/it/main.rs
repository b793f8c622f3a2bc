//! The promises of the sheet, in one binary.

mod compare;
mod example;
mod gate;
mod html;
mod json;
mod markdown;
mod quantity;
mod statistics;
mod text;
