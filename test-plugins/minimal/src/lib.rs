//! The smallest complete plugin: one kernel that does nothing. The loader's tests load it, and create their damaged files
//! by changing bytes of a copy.

use keyway_sdk::{plugin, register_kernel};

plugin! {
    name: "keyway.test/minimal",
    version: env!("CARGO_PKG_VERSION"),
    description: "One kernel that does nothing",
    devices: ["cpu"],
    layouts: ["strided"],
}

register_kernel! {
    op: "test_nothing", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}
