//! The fault that a process asks of a test plugin by `KEYWAY_FAULT`, for the conformance suite to find. `list` asks for the
//! list of all, which `cargo xtask mutants` reads.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// Names the fault at work.
const CHOICE: &str = "KEYWAY_FAULT";
/// The choice that lists the faults.
const LIST: &str = "list";
/// Begins each line of the list.
const MARK: &str = "@keyway-mutant";

/// What a list says of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its name.
    pub name: &'static str,
    /// The ops to judge; empty for all.
    pub ops: &'static [&'static str],
    /// The families to test; empty for all.
    pub families: &'static [&'static str],
    /// Its effect, in one line.
    pub about: &'static str,
}

impl Fault {
    /// A fault that a test of these ops must detect.
    pub const fn of_ops(name: &'static str, ops: &'static [&'static str], about: &'static str) -> Fault {
        Fault { name, ops, families: &[], about }
    }

    /// To be found by these families.
    pub const fn of_families(
        name: &'static str,
        families: &'static [&'static str],
        about: &'static str,
    ) -> Fault {
        Fault { name, ops: &[], families, about }
    }
}

/// What was asked for; empty for nothing.
pub fn chosen() -> &'static str {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var(CHOICE).unwrap_or_default())
}

/// Whether this fault is at work.
pub fn is(name: &str) -> bool {
    chosen() == name
}

/// Prints the faults if they were asked for, each as the mark, its name, the ops and the families to test with commas between
/// them, and its effect, with tabs between the parts.
///
/// # Errors
/// A choice that is none of them: a run without a fault would prove nothing.
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
