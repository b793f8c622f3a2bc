//! A Rust file for the checks: its lines with comments and strings blanked out, and which lines are tests.
//!
//! A small lexer, not a parser: it knows line and nested block comments, strings with escapes, raw strings, byte
//! and C strings, character literals and lifetimes. Blanked characters become spaces, so lines and columns stay.

/// One Rust file.
pub(crate) struct Source {
    /// Relative to the root.
    pub(crate) path: String,
    /// The lines as written.
    pub(crate) raw: Vec<String>,
    /// The same lines without comments and the contents of strings.
    pub(crate) code: Vec<String>,
    /// Whether a line belongs to an item under `#[cfg(test)]`.
    pub(crate) test: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let blanked = blank(text);
        let code: Vec<String> = blanked.lines().map(str::to_owned).collect();
        let test = test_lines(&blanked, code.len());
        Source { path: path.to_owned(), raw: text.lines().map(str::to_owned).collect(), code, test }
    }

    /// The name of the crate's folder under `crates/`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// True for a file of tests, examples or benchmarks rather than of the product.
    pub(crate) fn is_outside_the_product(&self) -> bool {
        let folders = ["/tests/", "/examples/", "/benches/"];
        folders.iter().any(|folder| self.path.contains(folder)) || self.path.ends_with("/tests.rs")
    }

    /// Numbered lines of code, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// Numbered lines of the product's code, without those under `#[cfg(test)]`.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().filter(|(number, _)| !self.test[number - 1])
    }
}

/// Positions of a whole identifier in a line.
pub(crate) fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    line.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let after = line[at + word.len()..].chars().next();
        !line[..at].ends_with(is_name) && !after.is_some_and(is_name)
    })
}

pub(crate) fn has_word(line: &str, word: &str) -> bool {
    words(line, word).next().is_some()
}

pub(crate) fn is_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Replaces comments and the contents of literals by spaces; line breaks stay.
fn blank(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = match characters[at] {
            '/' if characters.get(at + 1) == Some(&'/') => end_of_line(&characters, at),
            '/' if characters.get(at + 1) == Some(&'*') => end_of_comment(&characters, at),
            '"' => end_of_string(&characters, at),
            'r' if at == 0 || !is_name(characters[at - 1]) || begins_literal(&characters, at) => {
                end_of_raw_string(&characters, at).unwrap_or(at)
            }
            '\'' => end_of_character(&characters, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(characters[at]);
            at += 1;
        } else {
            out.extend(characters[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// True when the `r` at `at` follows the `b` or `c` of `br"…"` or `cr"…"`.
fn begins_literal(characters: &[char], at: usize) -> bool {
    matches!(characters[at - 1], 'b' | 'c') && (at == 1 || !is_name(characters[at - 2]))
}

fn end_of_line(characters: &[char], at: usize) -> usize {
    characters[at..].iter().position(|&c| c == '\n').map_or(characters.len(), |length| at + length)
}

fn end_of_comment(characters: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < characters.len() {
        match (characters[at], characters.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(characters.len())
}

fn end_of_string(characters: &[char], at: usize) -> usize {
    let mut at = at + 1;
    while at < characters.len() {
        match characters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    characters.len()
}

/// `r"…"` or `r#"…"#` with any number of signs; `None` when the `r` begins something else.
fn end_of_raw_string(characters: &[char], at: usize) -> Option<usize> {
    let signs = characters[at + 1..].iter().take_while(|&&c| c == '#').count();
    let begin = at + 1 + signs;
    if characters.get(begin) != Some(&'"') {
        return None;
    }
    let closes = |&quote: &usize| {
        characters[quote] == '"' && characters[quote + 1..].iter().take(signs).filter(|&&c| c == '#').count() == signs
    };
    Some((begin + 1..characters.len()).find(closes).map_or(characters.len(), |quote| quote + 1 + signs))
}

/// `'x'` or `'\…'`; `None` for a lifetime.
fn end_of_character(characters: &[char], at: usize) -> Option<usize> {
    if characters.get(at + 1) == Some(&'\\') {
        let close = characters.get(at + 3..)?.iter().position(|&c| c == '\'')?;
        return Some(at + 3 + close + 1);
    }
    (characters.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

/// Marks the lines of every item under `#[cfg(test)]`: from the attribute to the item's closing brace, or to its
/// semicolon if it has no braces.
fn test_lines(code: &str, count: usize) -> Vec<bool> {
    let mut test = vec![code.contains("#![cfg(test)]"); count];
    for (begin, _) in code.match_indices("#[cfg(test)]") {
        let (mut depth, mut end) = (0_usize, code.len());
        for (offset, character) in code[begin..].char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(character, '}' | ';') {
                end = begin + offset;
                break;
            }
        }
        let first = code[..begin].matches('\n').count();
        let last = code[..end].matches('\n').count().min(count.saturating_sub(1));
        test[first..=last].fill(true);
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, hidden: &[&str], kept: &[&str]) {
        let blanked = blank(text);
        assert_eq!(blanked.chars().count(), text.chars().count(), "columns must stay");
        for word in hidden {
            assert!(!blanked.contains(word), "{word} is left in {blanked:?}");
        }
        for word in kept {
            assert!(blanked.contains(word), "{word} is lost from {blanked:?}");
        }
    }

    #[test]
    fn comments_and_strings_are_blanked_and_code_is_kept() {
        check("a // hid\nb /* hid /* hid */ hid */ c", &["hid"], &["a ", "b ", " c"]);
        check(r#"f("hid \" hid", "hid\\") + g"#, &["hid"], &["f(", "+ g"]);
        check(r##"r#"hid " hid"# + b"hid" + br#"hid"# + r"hid\" + kept"##, &["hid"], &["+ kept"]);
        check("'\"' + kept + '\\'' + kept2 + '\\u{1f}' + k3", &[], &["+ kept", "+ kept2", "+ k3"]);
        check(
            "fn f<'a>(x: &'a str) -> Raw<'static> { var\"hid\" }",
            &["hid"],
            &["fn f<'a>(x: &'a str)", "Raw<'static>"],
        );
        check("x '\\", &[], &["x "]);
        check("let r#type = 1; for r in x {}", &[], &["r#type = 1; for r in x"]);
    }

    #[test]
    fn items_under_cfg_test_are_marked_to_their_end() {
        let source = Source::new("x.rs", "a\n#[cfg(test)]\nmod tests {\n  f() {}\n}\nb\n#[cfg(test)]\nuse c;\nd\n");
        assert_eq!(source.test, [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn words_are_whole_identifiers() {
        assert!(has_word("unsafe {", "unsafe") && has_word("(unsafe)", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe") && !has_word("is_unsafe", "unsafe"));
    }
}
