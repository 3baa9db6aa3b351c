//! The cost of an element, from which the number of threads follows.

/// The cost of one element, which determines the minimum number of elements per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Some arithmetic: memory bound.
    #[default]
    Cheap,
    /// A division, a square root, a few dozen operations.
    Medium,
    /// `exp`, `erf` and the like.
    Heavy,
}

impl Cost {
    /// The minimum number of elements per thread.
    pub const fn grain(self) -> usize {
        match self {
            Cost::Cheap => 32 * 1024,
            Cost::Medium => 8 * 1024,
            Cost::Heavy => 2 * 1024,
        }
    }
}
