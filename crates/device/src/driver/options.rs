//! [`DriverOptions`]: the syntax and the options of a driver, as its file states them; and the macro that makes a
//! `Driver` of the list of them.

use hairspring_describe::{Described, DescriptionError, Snippet, grammar};
use hairspring_machine::Machine;
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines};

/// The options of one driver's descriptions, `KIND:PLACE,KEY=VALUE`. The option `safe=` is common to all drivers and
/// not among them.
pub(crate) trait DriverOptions: Sized {
    /// The name of the driver in a description.
    const KIND: &'static str;
    /// A description that the driver accepts.
    const EXAMPLE: &'static str;
    /// The options, for errors about an unknown one.
    const HINT: &'static str;

    /// The defaults for the device at this place.
    fn at(place: &str) -> Self;

    /// The place, as it is written.
    fn place(&self) -> String;

    /// Sets an option; `false` if the driver has no option of this name.
    ///
    /// # Errors
    /// The value is wrong.
    fn set(&mut self, key: &str, value: Snippet<'_>) -> Result<bool, DescriptionError> {
        let _ = (key, value);
        Ok(false)
    }

    /// Checks the options together, after the last one was set.
    ///
    /// # Errors
    /// A required option is missing, or two contradict each other.
    fn check(&self, read: &Described<'_>) -> Result<(), DescriptionError> {
        let _ = read;
        Ok(())
    }

    /// The options as written: name and value, in order, without those at their defaults.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The options and the safe state as `KEY=VALUE`.
    fn settings_with(&self, safe: Option<Lines>) -> Vec<String> {
        let safe = safe.map(|safe| ("safe", safe.to_string()));
        self.settings().into_iter().chain(safe).map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// The whole description, in the form that is parsed.
    fn described(&self, safe: Option<Lines>) -> String {
        let place = format!("{}:{}", Self::KIND, self.place());
        std::iter::once(place).chain(self.settings_with(safe)).collect::<Vec<_>>().join(",")
    }

    /// The lines that are outputs, if that is known before the device is opened.
    fn output_lines(&self) -> Option<Lines>;

    /// Why a lock file beside the device is refused; `None` if users of the device need one.
    fn refuses_lock_file(&self) -> Option<&'static str> {
        None
    }

    /// Opens the device, its outputs in the safe state; by default that is all low.
    ///
    /// # Errors
    /// As the driver's own `open`.
    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError>;
}

/// 32 lines as a number.
pub(crate) fn lines_of(value: Snippet<'_>) -> Result<Lines, DescriptionError> {
    value.read(grammar::number, "write 32 lines as a number, like 0x00000004").map(Lines)
}

/// Makes the enum `Driver` of a list of options, and passes its calls on to them.
macro_rules! drivers {
    ($($(#[$doc:meta])* $name:ident($options:ty),)*) => {
        /// The drivers, each with the options of its description.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Driver {
            $($(#[$doc])* $name($options),)*
        }

        /// Every driver, with an example of each.
        pub(crate) const DRIVERS: hairspring_describe::Catalogue = hairspring_describe::Catalogue {
            noun: "driver",
            syntaxes: &[$(hairspring_describe::Syntax {
                kind: <$options>::KIND,
                place: hairspring_describe::PlaceForm::UpToComma,
                example: <$options>::EXAMPLE,
            },)*],
        };

        impl Driver {
            /// A driver with its defaults; `None` if there is no driver of this name.
            pub(crate) fn at(kind: &str, place: &str) -> Option<Self> {
                match kind {
                    $(<$options>::KIND => Some(Self::$name(<$options>::at(place))),)*
                    _ => None,
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => <$options>::KIND,)* }
            }

            /// The possible options after its place.
            pub(crate) fn hint(&self) -> &'static str {
                match self { $(Self::$name(_) => <$options>::HINT,)* }
            }

            pub(crate) fn described(&self, safe: Option<$crate::Lines>) -> String {
                match self { $(Self::$name(options) => options.described(safe),)* }
            }

            pub(crate) fn set(
                &mut self,
                key: &str,
                value: hairspring_describe::Snippet<'_>,
            ) -> Result<bool, hairspring_describe::DescriptionError> {
                match self { $(Self::$name(options) => options.set(key, value),)* }
            }

            pub(crate) fn check(
                &self,
                read: &hairspring_describe::Described<'_>,
            ) -> Result<(), hairspring_describe::DescriptionError> {
                match self { $(Self::$name(options) => options.check(read),)* }
            }

            /// The lines that are outputs, if that is known before the device is opened.
            pub(crate) fn output_lines(&self) -> Option<$crate::Lines> {
                match self { $(Self::$name(options) => options.output_lines(),)* }
            }

            /// Why a lock file beside the device is refused; `None` if its users need one.
            pub fn refuses_lock_file(&self) -> Option<&'static str> {
                match self { $(Self::$name(options) => options.refuses_lock_file(),)* }
            }

            pub(crate) fn open<'t, M: hairspring_machine::Machine + Send + Sync>(
                &self,
                safe: Option<$crate::Lines>,
                timebase: &'t hairspring_time::Timebase<M>,
            ) -> Result<Box<dyn $crate::Device + 't>, $crate::DeviceError> {
                match self { $(Self::$name(options) => options.open(safe, timebase),)* }
            }
        }
    };
}
pub(crate) use drivers;
