//! The crates that need Linux.

#[cfg(feature = "tune")]
pub use hairspring_culprit as culprit;
#[cfg(feature = "device")]
pub use hairspring_device as device;
#[cfg(feature = "exec")]
pub use hairspring_exec as exec;
#[cfg(feature = "record")]
pub use hairspring_plan as plan;
#[cfg(feature = "record")]
pub use hairspring_play as play;
#[cfg(feature = "record")]
pub use hairspring_record as record;
#[cfg(feature = "record")]
pub use hairspring_recording as recording;
#[cfg(feature = "record")]
pub use hairspring_ring as ring;
#[cfg(feature = "tune")]
pub use hairspring_settings as settings;
#[cfg(feature = "record")]
pub use hairspring_source as source;
#[cfg(feature = "device")]
pub use hairspring_station as station;
#[cfg(feature = "record")]
pub use hairspring_store as store;
#[cfg(feature = "record")]
pub use hairspring_tap as tap;
