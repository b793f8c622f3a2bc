//! The grammar of descriptions, and the grammars of values that several nouns share.

use std::ops::Range;

use winnow::ascii::digit1;
use winnow::combinator::{alt, cut_err, opt, peek, preceded, separated};
use winnow::error::EmptyError;
use winnow::stream::LocatingSlice;
use winnow::token::{rest, take_till, take_while};
use winnow::{ModalResult, Parser, Result};

/// A text with the position of the parser.
pub(crate) type Text<'t> = LocatingSlice<&'t str>;

/// An optional key, and a value or word; as byte ranges of the text.
#[derive(Debug)]
pub(crate) struct PartAt {
    pub(crate) all: Range<usize>,
    pub(crate) key: Option<Range<usize>>,
    pub(crate) value: Range<usize>,
}

/// The kind, and whether a colon follows it.
pub(crate) fn kind(text: &mut Text<'_>) -> Result<(Range<usize>, bool), EmptyError> {
    (take_till(0.., ':').span(), opt(':').map(|colon| colon.is_some())).parse_next(text)
}

/// A place that ends at a comma, and the comma.
pub(crate) fn place(text: &mut Text<'_>) -> Result<Range<usize>, EmptyError> {
    let place = take_till(0.., ',').span().parse_next(text)?;
    opt(',').parse_next(text)?;
    Ok(place)
}

/// The rest of the text.
pub(crate) fn all_the_rest(text: &mut Text<'_>) -> Result<Range<usize>, EmptyError> {
    rest.span().parse_next(text)
}

/// Parts with commas between them, to the end.
pub(crate) fn parts(text: &mut Text<'_>) -> Result<Vec<PartAt>, EmptyError> {
    separated(1.., part, ',').parse_next(text)
}

fn part(text: &mut Text<'_>) -> Result<PartAt, EmptyError> {
    let written = (take_till(0.., ['=', ',']).span(), opt(preceded('=', take_till(0.., ',').span())));
    let ((first, value), all) = written.with_span().parse_next(text)?;
    Ok(match value {
        Some(value) => PartAt { all, key: Some(first), value },
        None => PartAt { all, key: None, value: first },
    })
}

/// The text before the equals sign, and parts `key:value` or words with commas between them, to the end.
pub(crate) fn assignment(text: &mut Text<'_>) -> Result<(Range<usize>, Option<Vec<PartAt>>), EmptyError> {
    (take_till(0.., '=').span(), opt(preceded('=', separated(1.., said, ',')))).parse_next(text)
}

fn said(text: &mut Text<'_>) -> Result<PartAt, EmptyError> {
    let written = (take_till(0.., [':', ',']).span(), opt(preceded(':', take_till(0.., ',').span())));
    let ((first, value), all) = written.with_span().parse_next(text)?;
    Ok(match value {
        Some(value) => PartAt { all, key: Some(first), value },
        None => PartAt { all, key: None, value: first },
    })
}

/// A number, decimal or with `0x` before it.
///
/// # Errors
/// The text is not a number, or does not fit into 32 bits.
pub fn number(text: &mut &str) -> ModalResult<u32, EmptyError> {
    alt((preceded("0x", cut_err(hexadecimal)), preceded(opt('+'), decimal))).parse_next(text)
}

/// Decimal numbers with `+` between them: `3+4`.
///
/// # Errors
/// One of them is not a number, or does not fit into 32 bits.
pub fn numbers(text: &mut &str) -> ModalResult<Vec<u32>, EmptyError> {
    // After a plus only a number may follow.
    separated(1.., decimal, ('+', cut_err(peek(decimal)))).parse_next(text)
}

fn hexadecimal(text: &mut &str) -> ModalResult<u32, EmptyError> {
    take_while(1.., |c: char| c.is_ascii_hexdigit())
        .verify_map(|digits: &str| u32::from_str_radix(digits, 16).ok())
        .parse_next(text)
}

fn decimal(text: &mut &str) -> ModalResult<u32, EmptyError> {
    digit1.parse_to().parse_next(text)
}
