//! The second opinion of a named device: here the one that the first came from, so that nothing differs.

use keyway::ops::by_name;
use keyway::{Arg, Tensor, interposer, runtime};

#[test]
fn a_device_that_agrees_with_itself() {
    // SAFETY: this program has one test, and no other thread reads the environment yet.
    unsafe { std::env::set_var("KEYWAY_SHADOW", "cpu") };
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let paths = ["libkeyway_backend_cpu.so", "libshadow.so"].map(|name| folder.join(name));
    let loaded = runtime::load_backends(&paths).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let x = Tensor::from_slice(&[0.1f32, 1.3, -2.7]).unwrap();
    let on = interposer("shadow").unwrap().enter();
    x.exp().unwrap();
    drop(on);
    let made = by_name::call("shadow_worst", &[(&x).into(), Arg::Str("exp")]).unwrap();
    assert_eq!(made[0].to_vec::<f64>().unwrap()[0], 0.0);
}
