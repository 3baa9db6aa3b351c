//! A plugin that fails where a test tells it to.
//!
//! `KEYWAY_TEST_FAULT`, read when the host initialises the plugin, may be `panic_at_load` or
//! `fail_at_load`; anything else loads well. The kernel of `test_panic` always panics, that of
//! `test_fail` always answers with an error, and that of `test_nothing` does nothing.

use keyway_sdk::author::Error;
use keyway_sdk::{plugin, register_kernel};

plugin! {
    name: "keyway.test/faulty",
    version: env!("CARGO_PKG_VERSION"),
    description: "Fails where a test tells it to",
    devices: ["cpu"],
    layouts: ["strided"],
    kernels: 4,
    needs: [],
    setup: |_contents| match std::env::var("KEYWAY_TEST_FAULT").as_deref() {
        Ok("panic_at_load") => panic!("told to panic at load"),
        Ok("fail_at_load") => Err(Error::Failed { detail: "told to fail at load".to_string() }),
        _ => Ok(()),
    },
}

register_kernel! {
    op: "test_nothing", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Ok(()),
    f64 => |_call| Ok(()),
}

register_kernel! {
    op: "test_panic", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| panic!("told to panic in a kernel"),
}

register_kernel! {
    op: "test_fail", signature: "T>T", device: "cpu", layout: "strided",
    f32 => |_call| Err(Error::Failed { detail: "told to fail in a kernel".to_string() }),
}
