//! A second candidate: kernels for keys that `keyway.test/faulty` serves too, and for memory of other plugins.

use keyway_cpu_loops::prelude::*;
use keyway_sdk::author::Call;
use keyway_sdk::{Error, plugin, register_kernel};

plugin! {
    name: "keyway.test/second",
    version: env!("CARGO_PKG_VERSION"),
    description: "Kernels that are asked after those of others",
    devices: ["cpu", "test.keyway/twin"],
    layouts: ["strided"],
    compatible_with: ["keyway.test/interposer"],
    setup: |_contents| Ok(()),
}

// Served by this plugin if the other one refuses.
register_kernel! {
    op: "test_partial", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}

// Never called: a kernel whose nested call was refused has failed.
register_kernel! {
    op: "test_nested", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
}

// A kernel for the memory of another plugin. Two provide this device, and this one is compatible with one of them.
register_kernel! {
    op: "test_nothing", signature: "T>T", device: "test.keyway/twin", layout: "strided",
    f32 => add_two,
}

/// Adds 2 to the elements of contiguous tensors, in memory that this plugin knows to be host memory.
fn add_two(call: &Call<'_>) -> Result<(), Error> {
    let (from, to) = (call.tensor(0)?, call.output(0)?);
    if !(from.is_contiguous() && to.is_contiguous()) {
        return Err(Error::Unsupported { what: "a tensor that is not contiguous".to_string() });
    }
    let (source, target) = (from.data_ptr().cast::<f32>(), to.data_ptr().cast::<f32>());
    for i in 0..to.numel() {
        // SAFETY: the host passes `numel` elements of f32 for each; the owner of the device, which the manifest names, uses the
        // system's allocator.
        unsafe { target.add(i).write(source.add(i).read() + 2.0) };
    }
    Ok(())
}

// A fused kernel of a composite op, with a recognisable result. It serves matrices only.
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
