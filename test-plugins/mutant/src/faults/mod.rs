//! The faults; one of them is active in a process.

mod accuracy;
mod arguments;
mod attention;
mod blocks;
mod calls;
mod corners;
mod drawn;
mod ending;
mod exact;
mod gradients;
mod images;
mod late;
mod lengths;
mod memory;
mod numbers;
mod orders;
mod process;
mod random;
mod reading;
mod refusing;
mod sizes;
mod stateful;
mod sums;
mod thresholds;
mod writing;

use crate::site::{Kernel, Site};
use keyway_sdk::Error;
use keyway_sdk::author::Call;
use std::sync::OnceLock;

/// A fault.
pub struct Fault {
    /// The fault's name.
    name: &'static str,
    /// The fault's effect, in one line.
    about: &'static str,
    /// The ops whose kernels have the fault.
    ops: &'static [&'static str],
    /// The dtypes whose kernels have the fault; empty for all.
    dtypes: &'static [&'static str],
    /// The ops to test, if they are others.
    judged: &'static [&'static str],
    /// The families to judge by; empty for all.
    families: &'static [&'static str],
    /// Whether only the kernels for channels_last have it.
    images: bool,
    /// The call with the fault.
    run: fn(&Site<'_>) -> Result<(), Error>,
}

impl Fault {
    /// A fault of every dtype, to be detected by testing the ops that have it.
    const fn new(
        name: &'static str,
        about: &'static str,
        ops: &'static [&'static str],
        run: fn(&Site<'_>) -> Result<(), Error>,
    ) -> Fault {
        Fault { name, about, ops, dtypes: &[], judged: ops, families: &[], images: false, run }
    }

    /// A fault of these dtypes only.
    const fn dtypes(mut self, dtypes: &'static [&'static str]) -> Fault {
        self.dtypes = dtypes;
        self
    }

    /// A fault only of the kernels for channels_last.
    const fn images(mut self) -> Fault {
        self.images = true;
        self
    }

    /// Sets the families that must detect the fault.
    const fn families(mut self, families: &'static [&'static str]) -> Fault {
        self.families = families;
        self
    }

    /// Sets the ops whose tests must detect the fault.
    const fn judged(mut self, ops: &'static [&'static str]) -> Fault {
        self.judged = ops;
        self
    }

    fn concerns(&self, kernel: &Kernel) -> bool {
        self.ops.contains(&kernel.op)
            && (!self.images || kernel.images)
            && (self.dtypes.is_empty() || self.dtypes.contains(&kernel.dtype))
    }
}

/// Every fault.
fn all() -> impl Iterator<Item = &'static Fault> {
    [
        reading::FAULTS,
        arguments::FAULTS,
        numbers::FAULTS,
        attention::FAULTS,
        sums::FAULTS,
        writing::FAULTS,
        orders::FAULTS,
        memory::FAULTS,
        calls::FAULTS,
        ending::FAULTS,
        accuracy::FAULTS,
        corners::FAULTS,
        gradients::FAULTS,
        images::FAULTS,
        refusing::FAULTS,
        late::FAULTS,
        sizes::FAULTS,
        lengths::FAULTS,
        blocks::FAULTS,
        exact::FAULTS,
        process::FAULTS,
        random::FAULTS,
        drawn::FAULTS,
        stateful::FAULTS,
        thresholds::FAULTS,
    ]
    .into_iter()
    .flatten()
}

fn chosen() -> Option<&'static Fault> {
    static CHOSEN: OnceLock<Option<&'static Fault>> = OnceLock::new();
    *CHOSEN.get_or_init(|| all().find(|fault| keyway_test_faults::is(fault.name)))
}

/// Checks the selected name; prints the faults if `list` was requested.
///
/// # Errors
/// The selected name is not a fault: a run without one would prove nothing.
pub fn announce() -> Result<(), Error> {
    let listed = all().map(|fault| keyway_test_faults::Fault {
        families: fault.families,
        ..keyway_test_faults::Fault::of_ops(fault.name, fault.judged, fault.about)
    });
    keyway_test_faults::announce(listed).map_err(|detail| Error::Failed { detail })
}

/// Serves a call: with the active fault, if it concerns this kernel.
pub fn answer(call: &Call<'_>, kernel: &'static Kernel) -> Result<(), Error> {
    let site = Site { call, kernel };
    match chosen() {
        Some(fault) if fault.concerns(kernel) => (fault.run)(&site),
        _ => site.run(),
    }
}
