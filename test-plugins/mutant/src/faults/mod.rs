//! The faults; one of them is active in a process.

mod accuracy;
mod arguments;
mod attention;
mod blocks;
mod calls;
mod complex;
mod corners;
mod drawn;
mod ending;
mod exact;
mod factors;
mod fault;
mod fourier;
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
mod sequences;
mod sizes;
mod stateful;
mod sums;
mod thresholds;
mod writing;

use crate::site::{Kernel, Site};
use fault::Fault;
use keyway_sdk::Error;
use keyway_sdk::author::Call;
use std::sync::OnceLock;

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
        complex::FAULTS,
        ending::FAULTS,
        accuracy::FAULTS,
        corners::FAULTS,
        gradients::FAULTS,
        images::FAULTS,
        refusing::FAULTS,
        late::FAULTS,
        sequences::FAULTS,
        sizes::FAULTS,
        lengths::FAULTS,
        blocks::FAULTS,
        exact::FAULTS,
        factors::FAULTS,
        fourier::FAULTS,
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
