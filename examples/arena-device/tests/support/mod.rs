//! Loads the plugin beside the installed CPU backend.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway::{Device, runtime};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The plugin, beside this test.
pub fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libarena_device.so")
}

/// The device.
pub fn arena() -> Device {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let loaded = runtime::load_backends(&[library()]).unwrap();
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    });
    Device::new("example.org/arena", 0).unwrap()
}

/// All tests of a program share the device's memory and the random generator.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
