//! The fault of a test plugin that a process selects by `KEYWAY_FAULT`, for the conformance suite to detect. `list` prints
//! all faults, which `cargo xtask mutants` reads.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// The variable with the name of the active fault.
const CHOICE: &str = "KEYWAY_FAULT";
/// The choice that lists the faults.
const LIST: &str = "list";
/// The prefix of each line of the list.
const MARK: &str = "@keyway-mutant";

/// The description of a fault in the list.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The fault's name.
    pub name: &'static str,
    /// The ops to judge; empty for all.
    pub ops: &'static [&'static str],
    /// The families to test; empty for all.
    pub families: &'static [&'static str],
    /// The fault's effect, in one line.
    pub about: &'static str,
}

impl Fault {
    /// A fault that a test of these ops must detect.
    pub const fn of_ops(name: &'static str, ops: &'static [&'static str], about: &'static str) -> Fault {
        Fault { name, ops, families: &[], about }
    }

    /// A fault that these families must detect.
    pub const fn of_families(
        name: &'static str,
        families: &'static [&'static str],
        about: &'static str,
    ) -> Fault {
        Fault { name, ops: &[], families, about }
    }
}

/// The selected fault; empty for none.
pub fn chosen() -> &'static str {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var(CHOICE).unwrap_or_default())
}

/// Whether this fault is at work.
pub fn is(name: &str) -> bool {
    chosen() == name
}

/// Prints the faults if `list` was requested, each as the mark, its name, the ops and the families to test separated by
/// commas, and its effect, separated by tabs.
///
/// # Errors
/// The selected name is not a fault: a run without a fault would prove nothing.
pub fn announce(faults: impl IntoIterator<Item = Fault>) -> Result<(), String> {
    let choice = chosen();
    let mut known = choice.is_empty() || choice == LIST;
    for Fault { name, ops, families, about } in faults {
        known |= choice == name;
        if choice == LIST {
            println!("{MARK}\t{name}\t{}\t{}\t{about}", ops.join(","), families.join(","));
        }
    }
    if known { Ok(()) } else { Err(format!("{CHOICE}: there is no fault `{choice}`")) }
}
