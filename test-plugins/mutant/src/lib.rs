//! A plugin for mutation tests of the conformance suite: it serves calls with the kernels of another backend and injects
//! one fault. A suite that passes it under some fault is too weak.
//!
//! - `KEYWAY_MUTANT_OF` is the path of the backend whose kernels it calls, a library that the host has loaded too.
//! - `KEYWAY_FAULT` names the fault; without it every call passes through unchanged. `list` prints the faults, one on each
//!   line, as documented at `keyway_test_faults::announce`; with an unknown name the plugin refuses to load.
//!
//! Decisions:
//! - `faults` is the only list of faults: `cargo xtask mutants` reads it from the built plugin;
//! - a fault accesses raw calls, since the SDK's safe types prevent most faults;
//! - a fault stays within memory that the call or the suite's guard bands own unless it is about leaving it, so that the
//!   fault itself is detected and not a resulting crash.

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
