//! The sheet as one HTML file.

use hairspring_sheet::render::html;

use crate::example;

#[test]
fn the_page_is_as_reviewed() {
    insta::assert_snapshot!(html(&example::sheet()));
}
