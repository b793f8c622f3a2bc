//! Recovery after a crash: what is durable, what is proven, what is lost.
