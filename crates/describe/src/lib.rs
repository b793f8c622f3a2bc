//! Descriptions on command lines and in station files: `kind:place,key=value,word`.
//!
//! Devices, cards, event sources, sinks and instruments are all described in this form. This crate parses the form, and
//! locates mistakes in the text. It does not know the kinds: each noun has its own [`Catalogue`], and gives the parts a
//! meaning.
//!
//! ```text
//! virtual:/dev/shm/board,read=1.25us,safe=0x00000004
//! ───┬─── ──────┬─────── ─┬── ──┬─── ───────┬───────
//!  kind       place      key  value        part
//! ```
//!
//! # Grammar
//! * `description = kind [":" [place] {"," part}]`
//! * `part = key "=" value | word`
//! * Spaces around the kind, the place, parts, keys and values are ignored, and so are empty parts.
//! * A place ends at the first comma ([`PlaceForm::UpToComma`]). For a few kinds the place is the rest of the text
//!   ([`PlaceForm::Rest`]). Others have no place: only parts follow the colon ([`PlaceForm::Absent`]).
//!
//! The description of one of several things, for example of a channel of a card, is an [`Assignment`]:
//! `subject "=" key ":" value {"," …}`.
//!
//! # Errors
//! A [`DescriptionError`] names the wrong part and its remedy, and points at the character:
//!
//! ```text
//! 'safe=0x1g': write 32 lines as a number, like 0x00000004
//!   virtual:/dev/shm/board,safe=0x1g
//!                                  ^
//! ```
//!
//! # Example
//! ```
//! use hairspring_describe::{Catalogue, PlaceForm, Syntax, grammar};
//!
//! const LAMPS: Catalogue = Catalogue {
//!     noun: "lamp",
//!     syntaxes: &[Syntax { kind: "led", place: PlaceForm::UpToComma, example: "led:/dev/lamp0,lines=3+4" }],
//! };
//!
//! let described = LAMPS.read("led:/dev/lamp0,lines=3+4")?;
//! assert_eq!((described.kind(), described.place()?.text()), ("led", "/dev/lamp0"));
//! for part in described.parts() {
//!     assert_eq!(part.key(), Some("lines"));
//!     assert_eq!(part.value().read(grammar::numbers, "write numbers, like 3+4")?, [3, 4]);
//! }
//! let error = LAMPS.read("let:/dev/lamp0").unwrap_err().to_string();
//! assert!(error.starts_with("'let': there is no such lamp: choose led, as in led:/dev/lamp0,lines=3+4\n"));
//! # Ok::<(), hairspring_describe::DescriptionError>(())
//! ```

mod described;
mod error;
mod exact_span;
pub mod grammar;
mod snippet;

pub use described::{Assignment, Catalogue, Described, Part, PlaceForm, Syntax};
pub use error::DescriptionError;
pub use exact_span::exact_span;
pub use snippet::Snippet;
