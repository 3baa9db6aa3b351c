//! A plugin that registers nothing. Its manifest has all optional fields.

keyway_sdk::plugin! {
    name: "keyway.test/empty",
    version: env!("CARGO_PKG_VERSION"),
    description: "Registers nothing",
    priority: -12,
    compatible_with: ["keyway.test/device", "other.example/plugin"],
}
