//! A card made of a clock: it produces at its rate whether or not anybody takes the data.
