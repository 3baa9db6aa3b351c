//! A plugin that panics in a kernel: the call is an error, the plugin is not called again, the host lives.

mod table_support;

use keyway_dispatcher::{DType, Error, registry};
use keyway_sdk::abi::codes::status;
use table_support::*;

#[test]
fn a_panic_poisons_the_plugin_and_nothing_else() {
    let _one = load(&["keyway_test_minimal", "keyway_test_faulty"]);
    let (single, double) = (zeros(&[2], DType::F32), zeros(&[2], DType::F64));
    one("test_nothing", &double).unwrap();
    let failed = |error: Error, part: &str| match error {
        Error::Backend { status, message, plugin, .. } => {
            assert_eq!((status, plugin), (status::PANICKED, "keyway.test/faulty"));
            assert!(message.contains(part), "{message}");
        }
        other => panic!("{other}"),
    };
    failed(one("test_panic", &single).unwrap_err(), "the plugin panicked: told to panic in a kernel");
    failed(one("test_panic", &single).unwrap_err(), "panicked in an earlier call");
    failed(one("test_nothing", &double).unwrap_err(), "panicked in an earlier call");
    // The other plugin serves its kernels; without the poisoned one the other kernels are missing, not broken.
    one("test_nothing", &single).unwrap();
    assert!(registry::retire("keyway.test/faulty"));
    assert!(matches!(one("test_nothing", &double), Err(Error::MissingKernel(_))));
}
