//! The second candidate: kernels for keys that `keyway.test/faulty` serves too, or has the memory of.

use keyway_cpu_loops::prelude::*;
use keyway_sdk::{Error, plugin, register_kernel};

plugin! {
    name: "keyway.test/second",
    version: env!("CARGO_PKG_VERSION"),
    description: "Kernels that are asked after those of others",
    devices: ["cpu", "test.keyway/twin"],
    layouts: ["strided"],
    setup: |_contents| Ok(()),
}

// Served here where the other plugin refuses.
register_kernel! {
    op: "test_partial", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}

// Never asked: a kernel whose nested call was refused has failed.
register_kernel! {
    op: "test_nested", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}

// A kernel for the memory of another plugin, with which this one does not declare itself compatible.
register_kernel! {
    op: "test_nothing", signature: "T>T", device: "test.keyway/twin", layout: "strided",
    f32 => |_call| Ok(()),
}

// A fused kernel of a composite op, with a result by which it is known. It serves matrices only.
register_kernel! {
    op: "linear", signature: "TTO>T", device: "cpu", layout: "strided",
    f32 => |call| {
        if call.tensor(0)?.sizes().len() != 2 {
            return Err(Error::Unsupported { what: "an input that is no matrix".to_string() });
        }
        call.contiguous_out::<f32>(0)?.fill(42.0);
        Ok(())
    },
}
