//! Descriptions of devices, event sources, instruments and analogue inputs, and the files of stations: an accepted text
//! is printed such that it can be read again, and a refusal names the place.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_device::instrument::Address;
use hairspring_device::{AnalogCard, DeviceDescription};
use hairspring_station::file;
use hairspring_station::source::EventSourceDescription;

fn check_one<T: FromStr<Err = DescriptionError> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(described) => {
            assert_eq!(described.to_string().parse::<T>().expect("what was printed is read"), described);
        }
        Err(error) => assert!(text.get(error.place()).is_some() && error.to_string().lines().count() <= 3),
    }
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    check_one::<DeviceDescription>(text);
    check_one::<EventSourceDescription>(text);
    check_one::<Address>(text);
    check_one::<AnalogCard>(text);
    if let Err(error) = file::read(text) {
        assert!(error.column <= error.text.chars().count() + 1, "{error}");
    }
}
