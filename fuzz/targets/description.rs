//! Descriptions of devices, event sources, instruments and analogue inputs, and the files of stations: whatever is accepted is printed as it
//! can be read again, and whatever is refused says where.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_device::instrument::Address;
use hairspring_device::{AnalogCard, DeviceDescription};
use hairspring_station::file;
use hairspring_station::source::SourceDescription;
use libfuzzer_sys::fuzz_target;

fn check<T: FromStr<Err = DescriptionError> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(described) => {
            assert_eq!(described.to_string().parse::<T>().expect("what was printed is read"), described);
        }
        Err(error) => assert!(text.get(error.place()).is_some() && error.to_string().lines().count() <= 3),
    }
}

fuzz_target!(|text: &str| {
    check::<DeviceDescription>(text);
    check::<SourceDescription>(text);
    check::<Address>(text);
    check::<AnalogCard>(text);
    if let Err(error) = file::read(text) {
        assert!(error.column <= error.text.chars().count() + 1, "{error}");
    }
});
