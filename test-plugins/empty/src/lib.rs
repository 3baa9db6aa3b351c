//! A plugin that registers nothing.

keyway_sdk::plugin! {
    name: "keyway.test/empty",
    version: env!("CARGO_PKG_VERSION"),
    description: "Registers nothing",
    devices: [],
    layouts: [],
    kernels: 0,
    needs: [],
    setup: |_contents| Ok(()),
}
