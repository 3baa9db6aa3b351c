//! The source of the costs of a plan.

/// The source of the times of calls and conversions.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Source {
    /// Measured on this machine.
    Measured,
    /// Estimated, with the relative times that backends declare.
    Declared,
}
