//! The root module of every Keyway plugin: two functions, frozen permanently.
//!
//! `abi_stable` checks the layout *and the crate version* of a root module when it loads a library, so any change here would
//! make the host refuse all existing plugins. Therefore this crate is separate from the SDK, stays at version 1.0.0, and has
//! only a negotiation and a lookup; everything that may grow is behind [`KeywayRoot::get_interface`] in `repr(C)` tables that
//! begin with their own size.

pub use abi_stable;

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;

/// The root module that a plugin exports under `abi_stable`'s loader symbol.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = KeywayRootRef)))]
#[sabi(missing_field(panic))]
pub struct KeywayRoot {
    /// Takes the lowest and highest ABI version that the host supports and returns the highest version that both support,
    /// or 0 if there is none.
    pub negotiate: extern "C" fn(host_min: u32, host_max: u32) -> u32,
    /// Returns the table of interface `id` at ABI `version`, or null if the plugin has none. The pointer is valid for the
    /// life of the process.
    #[sabi(last_prefix_field)]
    pub get_interface: extern "C" fn(id: u32, version: u32) -> *const u8,
}

impl RootModule for KeywayRootRef {
    abi_stable::declare_root_module_statics! {KeywayRootRef}
    const BASE_NAME: &'static str = "keyway_plugin";
    const NAME: &'static str = "keyway_plugin";
    const VERSION_STRINGS: VersionStrings = abi_stable::package_version_strings!();
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_root_crate_stays_at_its_frozen_version() {
        assert_eq!(env!("CARGO_PKG_VERSION"), "1.0.0");
    }

    #[test]
    fn the_loader_symbol_is_the_one_the_sdk_exports() {
        assert_eq!(abi_stable::library::ROOT_MODULE_LOADER_NAME, "_1as_0lib_1header_0root_bmodule_bloader");
    }
}
