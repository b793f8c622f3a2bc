//! Parsing, and the places where errors point.

use proptest::prelude::*;

use super::*;

const LAMPS: Catalogue = Catalogue {
    noun: "lamp",
    syntaxes: &[
        Syntax { kind: "led", place: PlaceForm::UpToComma, example: "led:/dev/lamp0,lines=3+4" },
        Syntax { kind: "file", place: PlaceForm::Rest, example: "file:/tmp/lamp" },
        Syntax { kind: "sim", place: PlaceForm::Absent, example: "sim:bright" },
        Syntax { kind: "gas", place: PlaceForm::Rest, example: "" },
    ],
};

type KeyAndValue<'t> = (Option<&'t str>, &'t str);

/// Kind, place, and parts as written, with their keys.
fn apart(text: &str) -> (&'static str, Option<&str>, Vec<KeyAndValue<'_>>) {
    let described = LAMPS.read(text).unwrap_or_else(|error| panic!("{error}"));
    let parts = described.parts().map(|part| (part.key(), part.value().text())).collect();
    (described.kind(), described.place().ok().map(Snippet::text), parts)
}

/// Requires an error of three lines, with the caret under this text.
#[track_caller]
fn says(error: &DescriptionError, why: &str, caret_under: &str) {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(why), "{text}");
    let [_, shown, carets] = lines[..] else { panic!("{text}") };
    let start = carets.find('^').expect("a caret");
    let under: String = shown.chars().skip(start).take(carets.len() - start).collect();
    assert_eq!(under, caret_under, "{text}");
}

#[test]
fn a_description_is_taken_apart_at_its_colon_commas_and_equals_signs() {
    assert_eq!(apart("led:/dev/l"), ("led", Some("/dev/l"), vec![]));
    assert_eq!(apart("led:a:b,c=d=e,f"), ("led", Some("a:b"), vec![(Some("c"), "d=e"), (None, "f")]));
    assert_eq!(apart(" led : a b , c = d ,, "), ("led", Some("a b"), vec![(Some("c"), "d")]));
    assert_eq!(apart("file:a,b=c:d"), ("file", Some("a,b=c:d"), vec![]));
    assert_eq!(apart("sim"), ("sim", None, vec![]));
    assert_eq!(apart("sim:bright,=,x="), ("sim", None, vec![(None, "bright"), (Some(""), ""), (Some("x"), "")]));
    assert!(LAMPS.has_kind_of("gas:x") && !LAMPS.has_kind_of("gasx") && !LAMPS.has_kind_of(""));
}

#[test]
fn what_is_missing_is_said_with_an_example() {
    let missing = |text: &str| LAMPS.read(text).and_then(|lamp| lamp.place().map(drop)).expect_err(text);
    says(&missing("gat:x"), "there is no such lamp: choose led, file, sim, as in led:/dev/lamp0,lines=3+4", "gat");
    says(&missing("led"), "write a colon and the place, as in led:", "");
    says(&missing("led:,x"), "write the place after the colon, as in led:", ",");
    says(&missing("file: "), "as in file:/tmp/lamp", "");
    assert_eq!(missing("").to_string().lines().count(), 1, "there is nothing to point at");
}

/// The first part, and its value.
fn read(text: &str) -> (Part<'_>, Snippet<'_>) {
    let part = LAMPS.read(text).expect(text).parts().next().expect("a part");
    (part, part.value())
}

#[test]
fn errors_point_at_the_first_character_that_is_wrong() {
    let number = |text: &str| read(text).1.read(grammar::number, "write a number");
    assert_eq!([number("led:x,n=17"), number("led:x, n = 0x1F")], [Ok(17), Ok(31)]);
    assert_eq!(number("led:x,n=+17"), Ok(17), "as Rust reads numbers");
    let error = number("led:x,n=0x1g").expect_err("g");
    assert_eq!((error.part().as_str(), error.why(), error.place()), ("n=0x1g", "write a number", 11..12));
    says(&error, "'n=0x1g': write a number", "g");
    says(&number("led:x,n=12é4").expect_err("é"), "write a number", "é");
    says(&number("led:x,n=").expect_err("empty"), "write a number", "");
    says(&number("led:x,n=4294967296").expect_err("large"), "write a number", "4");
    let numbers = |text: &str| read(text).1.read(grammar::numbers, "write 3+4");
    assert_eq!(numbers("led:x,n=3+40+0"), Ok(vec![3, 40, 0]));
    says(&numbers("led:x,n=3+x").expect_err("x"), "write 3+4", "x");
    says(&numbers("led:x,n=3++4").expect_err("twice"), "write 3+4", "+");
    says(&numbers("led:x,n=3+4-5").expect_err("minus"), "write 3+4", "-");
    says(&number("led:x,n=0xg").expect_err("g"), "write a number", "g");
    let (part, value) = read("led:x, n = a:b:c ");
    let (before, behind) = value.split_last(':').expect("a colon");
    assert_eq!((before.text(), behind.text(), part.text()), ("a:b", "c", "n = a:b:c"));
    says(&behind.wrong("no"), "'n = a:b:c': no", "c");
    says(&value.split_first(':').expect("a colon").1.wrong("no"), "no", "b:c");
    says(&part.unknown("no"), "no", "n");
    says(&part.wrong("no"), "no", "n = a:b:c");
    says(&behind.parse::<u8>().expect_err("no number"), "invalid digit", "c");
    says(&behind.parse_or::<u8>("write 7").expect_err("no number"), "'n = a:b:c': write 7", "c");
    says(&LAMPS.read("sim:x,y").expect("a lamp").no_parts().expect_err("two"), "nothing follows", "x");
}

proptest! {
    /// Parsing loses no text between the pieces, and errors about any piece can be shown.
    #[test]
    fn any_text_is_taken_apart_or_refused(text in "(led|file|sim|gas)?[a-z:,= é\u{7}+0-9]{0,30}") {
        match LAMPS.read(&text) {
            Ok(described) => {
                let place = described.place().map(Snippet::text).unwrap_or_default();
                let parts: usize = described.parts().map(|part| part.text().matches(|c| !":,= ".contains(c)).count()).sum();
                let all = text.matches(|c| !":,= ".contains(c)).count();
                let place = place.matches(|c| !":,= ".contains(c)).count();
                prop_assert_eq!(described.kind().len() + place + parts, all);
                for part in described.parts() {
                    prop_assert!(part.wrong("no").to_string().lines().count() == 3);
                    let _ = (part.value().read(grammar::number, "no"), part.value().read(grammar::numbers, "no"));
                }
            }
            Err(error) => prop_assert!(error.to_string().contains("choose led, file, sim")),
        }
    }

    /// A description that is joined from pieces is parsed into the same pieces.
    #[test]
    fn what_is_put_together_is_taken_apart(
        place in "[a-z/:=.0-9]{1,10}", parts in prop::collection::vec(("[a-z]{1,5}", "[a-z0-9+:=]{0,6}"), 0..5),
    ) {
        let text = parts.iter().fold(format!("led:{place}"), |text, (key, value)| format!("{text},{key}={value}"));
        let described = LAMPS.read(&text).expect("a lamp");
        prop_assert_eq!(described.place().map(Snippet::text), Ok(place.as_str()));
        let again: Vec<(String, String)> = described
            .parts()
            .map(|part| (part.key().unwrap_or_default().to_owned(), part.value().text().to_owned()))
            .collect();
        prop_assert_eq!(again, parts);
    }
}

#[test]
fn what_is_said_of_a_thing_has_colons_and_errors_that_point() {
    let said = Assignment::read("0 = name:pressure, unit:kPa,note:a:b=c,dc,", "0=name:x").expect("said");
    assert_eq!(said.subject().text(), "0");
    let parts: Vec<_> = said.parts().map(|part| (part.key(), part.value().text())).collect();
    assert_eq!(parts, [(Some("name"), "pressure"), (Some("unit"), "kPa"), (Some("note"), "a:b=c"), (None, "dc")]);
    let part = said.parts().nth(1).expect("a part");
    assert_eq!(part.value().wrong("no").place(), 24..27);
    for (text, place) in [("0", 1..1), ("", 0..0), ("=name:x", 0..0), ("0=", 2..2), ("0= , ", 4..4)] {
        let error = Assignment::read(text, "0=name:x").expect_err(text);
        assert_eq!(error.place(), place, "{text}");
        assert!(error.why().ends_with("as in 0=name:x"), "{error}");
    }
}
