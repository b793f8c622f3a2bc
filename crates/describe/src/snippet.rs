//! [`Snippet`]: a piece of a description with its position.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use winnow::Parser;
use winnow::error::{EmptyError, ErrMode};

use crate::error::DescriptionError;

/// A piece of a description: a place, a key, a value, or a piece of one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snippet<'t> {
    /// The whole description.
    whole: &'t str,
    /// The part of the piece, which errors name.
    named: (usize, usize),
    /// The piece itself.
    at: (usize, usize),
}

impl<'t> Snippet<'t> {
    /// A piece of `whole`, without surrounding spaces; errors name it as `named`.
    pub(crate) fn new(whole: &'t str, named: Range<usize>, at: Range<usize>) -> Self {
        let inner = &whole[at.clone()];
        let begin = at.start + (inner.len() - inner.trim_start().len());
        let end = begin + inner.trim().len();
        Self { whole, named: (named.start, named.end), at: (begin, end) }
    }

    /// A whole text as one piece, for texts of another form than [`Catalogue`](crate::Catalogue) reads.
    pub fn of(whole: &'t str) -> Self {
        Self::new(whole, 0..whole.len(), 0..whole.len())
    }

    /// The pieces between spaces and commas; errors name each one alone.
    pub fn words(self) -> Vec<Self> {
        let mut words = Vec::new();
        let mut at = self.at.0;
        for word in self.text().split([' ', '\t', ',']) {
            let piece = at..at + word.len();
            at = piece.end + 1;
            words.extend((!word.is_empty()).then(|| Self::new(self.whole, piece.clone(), piece)));
        }
        words
    }

    /// From the beginning of this piece to the end of a later one, as one piece.
    pub fn to(self, end: Self) -> Self {
        let piece = self.at.0..end.at.1.max(self.at.0);
        Self::new(self.whole, piece.clone(), piece)
    }

    /// The same piece, for errors that name another one.
    pub(crate) fn within(self, named: Self) -> Self {
        Self { named: named.at, ..self }
    }

    /// The place after the piece, for errors about a missing text.
    pub fn end(self) -> Self {
        Self { at: (self.at.1, self.at.1), ..self }
    }

    /// The text.
    pub fn text(self) -> &'t str {
        &self.whole[self.at.0..self.at.1]
    }

    /// Whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.at.0 == self.at.1
    }

    /// An error about the part that this piece belongs to, which points at the piece.
    pub fn wrong(self, why: impl Into<String>) -> DescriptionError {
        DescriptionError::new(self.whole, self.named.0..self.named.1, self.at.0..self.at.1, why.into())
    }

    /// Parses a value by a grammar. If it does not match, the error points at the first wrong character, with the text
    /// `why`.
    ///
    /// # Errors
    /// The piece does not match the grammar.
    pub fn read<T>(
        self,
        mut grammar: impl Parser<&'t str, T, ErrMode<EmptyError>>,
        why: impl Into<String>,
    ) -> Result<T, DescriptionError> {
        grammar.parse(self.text()).map_err(|error| {
            let at = error.char_span();
            let at = self.at.0 + at.start..self.at.0 + at.end;
            DescriptionError::new(self.whole, self.named.0..self.named.1, at, why.into())
        })
    }

    /// Parses a value with its type's `FromStr`, whose error becomes the text.
    ///
    /// # Errors
    /// The error of the type.
    pub fn parse<T: FromStr<Err: fmt::Display>>(self) -> Result<T, DescriptionError> {
        self.text().parse().map_err(|why: T::Err| self.wrong(why.to_string()))
    }

    /// Parses a value with its type's `FromStr`; the error has the text `why`.
    ///
    /// # Errors
    /// The value does not parse.
    pub fn parse_or<T: FromStr>(self, why: impl Into<String>) -> Result<T, DescriptionError> {
        self.text().parse().map_err(|_| self.wrong(why))
    }

    /// The pieces before and after the last such character. `None` if there is none.
    pub fn split_last(self, separator: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text().rsplit_once(separator)?;
        let piece = |at| Self::new(self.whole, self.named.0..self.named.1, at);
        Some((piece(self.at.0..self.at.0 + before.len()), piece(self.at.1 - behind.len()..self.at.1)))
    }

    /// The pieces before and after the first such character. `None` if there is none.
    pub fn split_first(self, separator: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text().split_once(separator)?;
        let piece = |at| Self::new(self.whole, self.named.0..self.named.1, at);
        Some((piece(self.at.0..self.at.0 + before.len()), piece(self.at.1 - behind.len()..self.at.1)))
    }
}
