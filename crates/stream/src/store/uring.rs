//! The store on io_uring: direct, asynchronous, from registered buffers.
