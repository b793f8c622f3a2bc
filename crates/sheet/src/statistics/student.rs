//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability that a t variable with `degrees` degrees of freedom is greater than `t`.
///
/// `degrees` is positive. NaN if an argument is NaN or `degrees` is not positive.
pub fn student_t_tail(t: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |distribution| distribution.sf(t))
}

/// The value that a t variable with `degrees` degrees of freedom exceeds with probability `tail`, for instance 2.776
/// for a tail of 0.025 and 4 degrees of freedom.
///
/// `tail` lies between 0 and 1, both excluded; NaN otherwise.
pub fn student_t_quantile(tail: f64, degrees: f64) -> f64 {
    if !(tail > 0.0 && tail < 1.0) {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::NAN, |distribution| -distribution.inverse_cdf(tail))
}
