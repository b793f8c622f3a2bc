//! Finds the line and column of a value in a JSON text, so that errors about its meaning have a place like syntax
//! errors.

/// A step from a value to one within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'s> {
    /// The value of this member of an object.
    Member(&'s str),
    /// This element of a list.
    Index(usize),
}

/// The line and column, from 1, of the value to which the steps lead; of the last value on the way if the steps lead
/// nowhere.
pub(super) fn position(text: &str, steps: &[Step]) -> (usize, usize) {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    for step in steps {
        let reached = scan.at;
        let found = match step {
            Step::Member(name) => scan.member(name),
            Step::Index(index) => scan.element(*index),
        };
        if !found {
            scan.at = reached;
            break;
        }
    }
    let before = text.get(..scan.at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

/// A place in a text that has been parsed before, so its syntax is right. On any other text it stops at some place.
struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn take(&mut self, c: char) -> bool {
        let there = self.rest().starts_with(c);
        if there {
            self.at += c.len_utf8();
        }
        there
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Goes to the value of a member of the object that begins here. If two members have that name, the last counts, as
    /// in parsing.
    fn member(&mut self, name: &str) -> bool {
        if !self.take('{') {
            return false;
        }
        let mut found = None;
        loop {
            self.space();
            let begin = self.at;
            if !self.string() {
                break;
            }
            let written = self.text.get(begin..self.at).unwrap_or("");
            self.space();
            self.take(':');
            self.space();
            if serde_json::from_str::<String>(written).is_ok_and(|written| written == name) {
                found = Some(self.at);
            }
            if !self.next() {
                break;
            }
        }
        self.at = found.unwrap_or(self.at);
        found.is_some()
    }

    /// Goes to an element of the list that begins here.
    fn element(&mut self, index: usize) -> bool {
        if !self.take('[') {
            return false;
        }
        self.space();
        for _ in 0..index {
            if !self.next() {
                return false;
            }
        }
        !self.rest().is_empty() && !self.rest().starts_with(']')
    }

    /// Goes over a value and the comma after it; false if there is none.
    fn next(&mut self) -> bool {
        let mut depth = 0_usize;
        loop {
            self.space();
            match self.rest().chars().next() {
                None => return false,
                Some('"') => {
                    self.string();
                }
                Some('{' | '[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some('}' | ']') if depth == 0 => return false,
                Some('}' | ']') => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(',') if depth == 0 => {
                    self.at += 1;
                    self.space();
                    return true;
                }
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }

    /// Goes over a string; false if there is none.
    fn string(&mut self) -> bool {
        if !self.take('"') {
            return false;
        }
        let mut escaped = false;
        for (index, c) in self.rest().char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at += index + 1;
                    return true;
                }
                _ => {}
            }
        }
        self.at = self.text.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_found_by_line_and_column() {
        let text = "{\n  \"a\": [1, {\"x\": \"}\\\"]\"},\n    {\"b\": null}],\n  \"c\": {\"µ\": 1, \"d\": 2}\n}";
        let place = |steps: &[Step]| position(text, steps);
        assert_eq!(place(&[]), (1, 1));
        assert_eq!(place(&[Step::Member("a")]), (2, 8));
        assert_eq!(place(&[Step::Member("a"), Step::Index(2)]), (3, 5));
        assert_eq!(place(&[Step::Member("a"), Step::Index(2), Step::Member("b")]), (3, 11));
        assert_eq!(place(&[Step::Member("c"), Step::Member("d")]), (4, 22));
        // A missing member: the place where it should have been.
        assert_eq!(place(&[Step::Member("c"), Step::Member("z")]), (4, 8));
        assert_eq!(place(&[Step::Member("a"), Step::Index(3)]), (2, 8));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_run_on(text in "[\\[\\]{}\",:\\\\a-cµ0 \n]{0,40}", index in 0_usize..4) {
            for steps in [&[Step::Member("a"), Step::Index(index)][..], &[Step::Index(index), Step::Member("b")][..]] {
                let (line, column) = position(&text, steps);
                prop_assert!(line >= 1 && column >= 1);
            }
        }
    }
}
