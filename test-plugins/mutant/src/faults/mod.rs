//! The faults, one of which is at work in a process.

mod arguments;
mod calls;
mod ending;
mod memory;
mod numbers;
mod reading;
mod sums;
mod writing;

use crate::site::{Kernel, Site};
use keyway_sdk::Error;
use keyway_sdk::author::Call;
use std::sync::OnceLock;

/// Names the fault at work.
const CHOICE: &str = "KEYWAY_FAULT";
/// The choice that lists the faults.
const LIST: &str = "list";
/// Begins each line of the list.
const MARK: &str = "@keyway-mutant";

/// A fault.
pub struct Fault {
    /// Its name.
    name: &'static str,
    /// What it does, in one line.
    about: &'static str,
    /// The ops whose kernels have it.
    ops: &'static [&'static str],
    /// The dtypes whose kernels have it; empty for all.
    dtypes: &'static [&'static str],
    /// The ops to judge, where they are others.
    judged: &'static [&'static str],
    /// The call with the fault.
    run: fn(&Site<'_>) -> Result<(), Error>,
}

impl Fault {
    /// A fault of every dtype, to be found by judging the ops that have it.
    const fn new(
        name: &'static str,
        about: &'static str,
        ops: &'static [&'static str],
        run: fn(&Site<'_>) -> Result<(), Error>,
    ) -> Fault {
        Fault { name, about, ops, dtypes: &[], judged: ops, run }
    }

    /// A fault of these dtypes only.
    const fn dtypes(mut self, dtypes: &'static [&'static str]) -> Fault {
        self.dtypes = dtypes;
        self
    }

    /// To be found by judging these ops.
    const fn judged(mut self, ops: &'static [&'static str]) -> Fault {
        self.judged = ops;
        self
    }

    fn concerns(&self, kernel: &Kernel) -> bool {
        self.ops.contains(&kernel.op) && (self.dtypes.is_empty() || self.dtypes.contains(&kernel.dtype))
    }
}

/// Every fault.
fn all() -> impl Iterator<Item = &'static Fault> {
    [
        reading::FAULTS,
        arguments::FAULTS,
        numbers::FAULTS,
        sums::FAULTS,
        writing::FAULTS,
        memory::FAULTS,
        calls::FAULTS,
        ending::FAULTS,
    ]
    .into_iter()
    .flatten()
}

fn chosen() -> Option<&'static Fault> {
    static CHOSEN: OnceLock<Option<&'static Fault>> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let choice = std::env::var(CHOICE).unwrap_or_default();
        all().find(|fault| fault.name == choice)
    })
}

/// Checks the choice; prints the faults if it is `list`, each as the mark, its name, the ops to judge with commas
/// between them, and what it does, with tabs between the parts.
///
/// # Errors
/// A choice that is no fault: a run without one would prove nothing.
pub fn announce() -> Result<(), Error> {
    match std::env::var(CHOICE).as_deref() {
        Err(_) | Ok("") => Ok(()),
        Ok(LIST) => {
            all().for_each(|fault| {
                println!("{MARK}\t{}\t{}\t{}", fault.name, fault.judged.join(","), fault.about);
            });
            Ok(())
        }
        Ok(_) if chosen().is_some() => Ok(()),
        Ok(other) => Err(Error::Failed { detail: format!("{CHOICE}: there is no fault `{other}`") }),
    }
}

/// Answers a call: with the fault, if the one at work concerns this kernel.
pub fn answer(call: &Call<'_>, kernel: &'static Kernel) -> Result<(), Error> {
    let site = Site { call, kernel };
    match chosen() {
        Some(fault) if fault.concerns(kernel) => (fault.run)(&site),
        _ => site.run(),
    }
}
