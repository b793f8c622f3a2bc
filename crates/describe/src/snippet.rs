//! [`Snippet`]: a piece of a description that knows where it stands.

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
    /// What errors name: the part that the piece belongs to.
    named: (usize, usize),
    /// The piece itself.
    at: (usize, usize),
}

impl<'t> Snippet<'t> {
    /// A piece of `whole` that errors name as `named`, without the spaces around it.
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

    /// The pieces between spaces and commas, each named for itself.
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

    /// The place behind it, for errors about what is missing there.
    pub fn end(self) -> Self {
        Self { at: (self.at.1, self.at.1), ..self }
    }

    /// What is written.
    pub fn text(self) -> &'t str {
        &self.whole[self.at.0..self.at.1]
    }

    /// Whether nothing is written.
    pub fn is_empty(self) -> bool {
        self.at.0 == self.at.1
    }

    /// An error about the part that this piece belongs to, which points at the piece.
    pub fn wrong(self, why: impl Into<String>) -> DescriptionError {
        DescriptionError::new(self.whole, self.named.0..self.named.1, self.at.0..self.at.1, why.into())
    }

    /// Reads a value by a grammar. If it does not fit, the error points at the first character that is wrong, and says `why`.
    ///
    /// # Errors
    /// The piece is no such value.
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

    /// Reads a value as its type does, whose own error says why it is none.
    ///
    /// # Errors
    /// As the type's.
    pub fn parse<T: FromStr<Err: fmt::Display>>(self) -> Result<T, DescriptionError> {
        self.text().parse().map_err(|why: T::Err| self.wrong(why.to_string()))
    }

    /// Reads a value as its type does, and says `why` if it is none.
    ///
    /// # Errors
    /// As the type's.
    pub fn parse_or<T: FromStr>(self, why: impl Into<String>) -> Result<T, DescriptionError> {
        self.text().parse().map_err(|_| self.wrong(why))
    }

    /// What stands before the last such character, and behind it. `None` if there is none.
    pub fn split_last(self, separator: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text().rsplit_once(separator)?;
        let piece = |at| Self::new(self.whole, self.named.0..self.named.1, at);
        Some((piece(self.at.0..self.at.0 + before.len()), piece(self.at.1 - behind.len()..self.at.1)))
    }

    /// What stands before the first such character, and behind it. `None` if there is none.
    pub fn split_first(self, separator: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text().split_once(separator)?;
        let piece = |at| Self::new(self.whole, self.named.0..self.named.1, at);
        Some((piece(self.at.0..self.at.0 + before.len()), piece(self.at.1 - behind.len()..self.at.1)))
    }
}
