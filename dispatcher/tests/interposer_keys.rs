//! The sixteen keys of interposers. A separate program, since the test takes all of them.

mod table_support;

use keyway_dispatcher::key::DispatchKey;
use keyway_dispatcher::registry::{KeyHandler, find_key, interposers, register_key_handler, restore, retire};
use table_support::*;

#[test]
fn a_retired_plugin_gives_its_keys_up_and_comes_back_only_where_there_are_some() {
    let _one = load(&["keyway_test_minimal", "keyway_test_faulty", "keyway_test_interposer"]);
    let plugin = "keyway.test/interposer";
    let (watch, meddler) = (find_key("watch").unwrap(), find_key("meddler").unwrap());
    assert_ne!(watch, meddler);
    assert!(retire(plugin));
    assert!(interposers().is_empty());

    // Another owner of the key that `watch` had, while it was away.
    let taken = |key: DispatchKey, name: &str| KeyHandler {
        key,
        name: name.to_string(),
        applies: |_| false,
        handler: Box::new(keyway_dispatcher::call::redispatch),
        plugin: None,
        interposer: None,
    };
    register_key_handler(taken(watch, "first")).unwrap();
    assert!(restore(plugin));
    let moved = find_key("watch").unwrap();
    assert!(moved != watch && moved != meddler, "{moved:?}");
    assert_eq!(find_key("meddler"), Some(meddler));
    one("test_nothing", &zeros(&[2], keyway_dispatcher::DType::F32)).unwrap();

    assert!(retire(plugin));
    let range = DispatchKey::INTERPOSER_FIRST.number()..=DispatchKey::INTERPOSER_LAST.number();
    for number in range {
        let key = DispatchKey::new(number).unwrap();
        if key != watch {
            register_key_handler(taken(key, &format!("filler {number}"))).unwrap();
        }
    }
    assert!(!restore(plugin), "no key is left");
    assert!(find_key("watch").is_none());
    one("test_nothing", &zeros(&[2], keyway_dispatcher::DType::F32)).unwrap();
}
