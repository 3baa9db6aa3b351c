//! A plugin for the conformance suite's own proof: it answers with the kernels of another backend and makes one
//! fault on the way. A suite that passes it under any fault does not bite.
//!
//! - `KEYWAY_MUTANT_OF` has the paths of the backends whose kernels it calls, libraries that the host has loaded too.
//! - `KEYWAY_FAULT` names the fault; without it every call passes through unchanged. `list` prints the faults, one a
//!   line, as `keyway_test_faults::announce` says; a name that is no fault refuses to load.
//!
//! Decisions:
//! - `faults` is the one list of faults: `cargo xtask mutants` asks the built plugin for it;
//! - a fault sees raw calls, since most faults are ones that the SDK's safe types do not allow;
//! - a fault stays within memory that the call or the suite's guard bands own wherever it is not about
//!   leaving them, so that what is caught is the fault and not a crash that it leads to.

mod faults;
mod kernels;
mod raw;
mod site;
mod wrapped;

keyway_sdk::plugin! {
    name: "keyway.test/mutant",
    version: env!("CARGO_PKG_VERSION"),
    description: "Another backend's kernels with one fault",
    devices: ["cpu"],
    layouts: ["strided", "channels_last"],
    setup: |_contents| faults::announce(),
}
