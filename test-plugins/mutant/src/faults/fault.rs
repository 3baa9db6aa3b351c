//! The description of a fault.

use crate::site::{Kernel, Site};
use keyway_sdk::Error;

/// A fault.
pub struct Fault {
    /// The fault's name.
    pub(super) name: &'static str,
    /// The fault's effect, in one line.
    pub(super) about: &'static str,
    /// The ops whose kernels have the fault.
    pub(super) ops: &'static [&'static str],
    /// The dtypes whose kernels have the fault; empty for all.
    pub(super) dtypes: &'static [&'static str],
    /// The ops to test, if they are others.
    pub(super) judged: &'static [&'static str],
    /// The families to judge by; empty for all.
    pub(super) families: &'static [&'static str],
    /// Whether only the kernels for channels_last have it.
    pub(super) images: bool,
    /// The call with the fault.
    pub(super) run: fn(&Site<'_>) -> Result<(), Error>,
}

impl Fault {
    /// A fault of every dtype, to be detected by testing the ops that have it.
    pub(super) const fn new(
        name: &'static str,
        about: &'static str,
        ops: &'static [&'static str],
        run: fn(&Site<'_>) -> Result<(), Error>,
    ) -> Fault {
        Fault { name, about, ops, dtypes: &[], judged: ops, families: &[], images: false, run }
    }

    /// A fault of these dtypes only.
    pub(super) const fn dtypes(mut self, dtypes: &'static [&'static str]) -> Fault {
        self.dtypes = dtypes;
        self
    }

    /// A fault only of the kernels for channels_last.
    pub(super) const fn images(mut self) -> Fault {
        self.images = true;
        self
    }

    /// Sets the families that must detect the fault.
    pub(super) const fn families(mut self, families: &'static [&'static str]) -> Fault {
        self.families = families;
        self
    }

    /// Sets the ops whose tests must detect the fault.
    pub(super) const fn judged(mut self, ops: &'static [&'static str]) -> Fault {
        self.judged = ops;
        self
    }

    pub(super) fn concerns(&self, kernel: &Kernel) -> bool {
        self.ops.contains(&kernel.op)
            && (!self.images || kernel.images)
            && (self.dtypes.is_empty() || self.dtypes.contains(&kernel.dtype))
    }
}
