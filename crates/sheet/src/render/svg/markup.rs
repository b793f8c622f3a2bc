//! Parts that the drawings share: escaped text, short numbers for markup, markers.

/// Escaped text, for an element or a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML and HTML cannot represent these.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate with a tenth of a unit, which is finer than a screen shows.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A marker around a point. Each style has its own shape, so that lines can be distinguished without colour.
pub(crate) fn marker(style: usize, x: f64, y: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{},{}", coordinate(x + dx), coordinate(y + dy));
    let shape = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("<polygon class=\"m s{style}\" points=\"{}\"/>", corners.join(" "))
    };
    let strokes = |strokes: &[[(f64, f64); 2]]| {
        let path: String = strokes.iter().map(|[a, b]| format!("M{}L{}", at(a.0, a.1), at(b.0, b.1))).collect();
        format!("<path class=\"l s{style}\" d=\"{path}\"/>")
    };
    match style {
        0 => format!("<circle class=\"m s{style}\" cx=\"{}\" cy=\"{}\" r=\"3.2\"/>", coordinate(x), coordinate(y)),
        1 => shape(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => shape(&[(0.0, -4.0), (3.8, 2.8), (-3.8, 2.8)]),
        3 => shape(&[(0.0, -4.2), (4.2, 0.0), (0.0, 4.2), (-4.2, 0.0)]),
        4 => strokes(&[[(-3.2, -3.2), (3.2, 3.2)], [(-3.2, 3.2), (3.2, -3.2)]]),
        5 => shape(&[(0.0, 4.0), (3.8, -2.8), (-3.8, -2.8)]),
        6 => strokes(&[[(-4.0, 0.0), (4.0, 0.0)], [(0.0, -4.0), (0.0, 4.0)]]),
        _ => shape(&[(-4.2, -2.0), (4.2, -2.0), (4.2, 2.0), (-4.2, 2.0)]),
    }
}
