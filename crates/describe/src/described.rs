//! [`Described`]: a parsed description; and [`Catalogue`]: the kinds of a noun.

use std::ops::Range;

use winnow::Parser as _;
use winnow::stream::LocatingSlice;

use crate::error::DescriptionError;
use crate::grammar::{self, PartAt};
use crate::snippet::Snippet;

/// The form of the text after the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceForm {
    /// Only parts.
    Absent,
    /// A place that ends at the first comma, and then parts.
    UpToComma,
    /// A place that is the rest of the text and may contain commas.
    Rest,
}

/// The syntax of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// The text before the first colon.
    pub kind: &'static str,
    /// The form of the text after it.
    pub place: PlaceForm,
    /// An example, for errors. A kind without an example is not offered: its noun refuses the kind with a reason.
    pub example: &'static str,
}

/// The kinds of a noun.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    /// The noun, for errors: a driver, a card.
    pub noun: &'static str,
    /// The kinds; errors about an unknown kind show the example of the first.
    pub syntaxes: &'static [Syntax],
}

impl Catalogue {
    /// Whether a text begins with one of these kinds.
    pub fn has_kind_of(&self, text: &str) -> bool {
        self.find(kind_of(text).text()).is_some()
    }

    /// Parses a description.
    ///
    /// # Errors
    /// The kind is not in the catalogue.
    pub fn read<'t>(&self, text: &'t str) -> Result<Described<'t>, DescriptionError> {
        let mut rest = LocatingSlice::new(text);
        let whole = 0..text.len();
        let (at, has_colon) = grammar::kind(&mut rest).unwrap_or((whole.clone(), false));
        let kind = Snippet::new(text, at.clone(), at);
        let Some(syntax) = self.find(kind.text()) else {
            return Err(kind.wrong(format!("there is no such {}: choose {}", self.noun, self.choice())));
        };
        let place = match syntax.place {
            PlaceForm::Absent => None,
            // The grammar takes any text.
            PlaceForm::UpToComma => grammar::place.parse_next(&mut rest).ok(),
            PlaceForm::Rest => grammar::all_the_rest.parse_next(&mut rest).ok(),
        };
        let parts = grammar::parts(&mut rest).unwrap_or_default();
        let place = place.map(|at| Snippet::new(text, whole.clone(), at));
        Ok(Described { whole: Snippet::new(text, whole.clone(), whole), syntax, has_colon, place, parts, text })
    }

    fn find(&self, kind: &str) -> Option<Syntax> {
        self.syntaxes.iter().copied().find(|syntax| syntax.kind == kind)
    }

    /// The kinds, with an example.
    fn choice(&self) -> String {
        let offered = || self.syntaxes.iter().filter(|syntax| !syntax.example.is_empty());
        let kinds: Vec<&str> = offered().map(|syntax| syntax.kind).collect();
        let example = offered().next().map_or("", |syntax| syntax.example);
        format!("{}, as in {example}", kinds.join(", "))
    }
}

/// The kind of a description of any catalogue.
fn kind_of(text: &str) -> Snippet<'_> {
    let (at, _) = grammar::kind(&mut LocatingSlice::new(text)).unwrap_or((0..text.len(), false));
    Snippet::new(text, at.clone(), at)
}

/// A parsed description.
#[derive(Debug)]
pub struct Described<'t> {
    text: &'t str,
    whole: Snippet<'t>,
    syntax: Syntax,
    has_colon: bool,
    place: Option<Snippet<'t>>,
    parts: Vec<PartAt>,
}

impl<'t> Described<'t> {
    /// Its kind.
    pub fn kind(&self) -> &'static str {
        self.syntax.kind
    }

    /// An example of its kind.
    pub fn example(&self) -> &'static str {
        self.syntax.example
    }

    /// An error about a missing part, which points after the end.
    pub fn missing(&self, why: impl Into<String>) -> DescriptionError {
        self.whole.end().wrong(why)
    }

    /// The whole description, for errors about parts that do not fit together.
    pub fn whole(&self) -> Snippet<'t> {
        self.whole
    }

    /// Its place.
    ///
    /// # Errors
    /// There is none.
    pub fn place(&self) -> Result<Snippet<'t>, DescriptionError> {
        let behind = if self.has_colon { "the place after the colon" } else { "a colon and the place" };
        let missing = |piece: Snippet<'_>| piece.wrong(format!("write {behind}, as in {}", self.example()));
        match self.place {
            Some(place) if !place.is_empty() => Ok(place.within(place)),
            Some(place) => Err(missing(place)),
            None => Err(missing(self.whole.end())),
        }
    }

    /// Its non-empty parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'t>> {
        parts_of(self.text, &self.parts)
    }

    /// Refuses parts, for kinds that have none.
    ///
    /// # Errors
    /// There is one.
    pub fn no_parts(&self) -> Result<(), DescriptionError> {
        match self.parts().next() {
            Some(part) => Err(part.wrong(format!("nothing follows: write it as in {}", self.example()))),
            None => Ok(()),
        }
    }
}

/// The non-empty parts of a text.
fn parts_of<'t>(text: &'t str, parts: &[PartAt]) -> impl Iterator<Item = Part<'t>> {
    parts.iter().filter_map(move |PartAt { all, key, value }| {
        let all = Snippet::new(text, all.clone(), all.clone());
        let all = all.within(all);
        let piece = |at: &Range<usize>| Snippet::new(text, at.clone(), at.clone()).within(all);
        (!all.is_empty()).then(|| Part { all, key: key.as_ref().map(piece), value: piece(value) })
    })
}

/// A description of one of several things: `0=name:pressure,unit:kPa`.
#[derive(Debug)]
pub struct Assignment<'t> {
    text: &'t str,
    subject: Snippet<'t>,
    parts: Vec<PartAt>,
}

impl<'t> Assignment<'t> {
    /// Parses an assignment: the subject, an equals sign, and parts `key:value` with commas between them. A value may
    /// contain colons.
    ///
    /// # Errors
    /// There is no equals sign, or nothing before or after it. `example` is shown.
    pub fn read(text: &'t str, example: &str) -> Result<Self, DescriptionError> {
        let (subject, parts) = grammar::assignment(&mut LocatingSlice::new(text)).unwrap_or((0..text.len(), None));
        let subject = Snippet::new(text, 0..text.len(), subject);
        let said = Self { text, subject, parts: parts.unwrap_or_default() };
        if subject.is_empty() || said.parts().next().is_none() {
            let at = if subject.is_empty() { subject } else { Snippet::of(text).end() };
            return Err(at.wrong(format!("write what is said of it, as in {example}")));
        }
        Ok(said)
    }

    /// The text before the equals sign.
    pub fn subject(&self) -> Snippet<'t> {
        self.subject
    }

    /// The whole text, for errors about parts that do not fit together.
    pub fn whole(&self) -> Snippet<'t> {
        Snippet::of(self.text)
    }

    /// Its non-empty parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'t>> {
        parts_of(self.text, &self.parts)
    }
}

/// A part of a description: `key=value`, or a word; in an [`Assignment`] `key:value`.
#[derive(Clone, Copy, Debug)]
pub struct Part<'t> {
    all: Snippet<'t>,
    key: Option<Snippet<'t>>,
    value: Snippet<'t>,
}

impl<'t> Part<'t> {
    /// The text before the equals sign, or in an [`Assignment`] before the colon; `None` for a word.
    pub fn key(&self) -> Option<&'t str> {
        self.key.map(Snippet::text)
    }

    /// The text after the equals sign, or the word.
    pub fn value(&self) -> Snippet<'t> {
        self.value
    }

    /// The whole part.
    pub fn text(&self) -> &'t str {
        self.all.text()
    }

    /// An error about the whole part.
    pub fn wrong(&self, why: impl Into<String>) -> DescriptionError {
        self.all.wrong(why)
    }

    /// An error for an unknown key or word.
    pub fn unknown(&self, why: impl Into<String>) -> DescriptionError {
        self.key.unwrap_or(self.value).wrong(why)
    }
}

#[cfg(test)]
mod tests;
