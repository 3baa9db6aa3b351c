//! Plugins in C, compiled by the system's compiler and loaded by the real loader: with tables of other sizes than the
//! host's, and with one fault each.

#[path = "../../plugin-sdk/tests/c_compiler/mod.rs"]
mod c_compiler;
mod table_support;

use keyway_dispatcher::call::call;
use keyway_dispatcher::device::{Stream, memory_stats, properties, synchronize};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::loader::{Config, Loaded, Loader, Probe, Quarantine};
use keyway_dispatcher::memory::{read_bytes, write_bytes};
use keyway_dispatcher::op::{Arg, Args, Out};
use keyway_dispatcher::registry::{self, find_key, find_op};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device, Layout, host, install};
use std::path::Path;

/// Compiles, loads and installs the test plugin under this name. `None` without a compiler.
fn load(name: &str, macros: &[&str]) -> Option<Loaded> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/plugin.c");
    let named = format!("-DNAME=\"{name}\"");
    let flags: Vec<&str> = macros.iter().copied().chain([named.as_str()]).collect();
    // The path identifies the build: a process opens one library at one path.
    let file = format!("{name}{}", macros.concat().replace(['-', '='], "_"));
    let library = c_compiler::plugin(&source, &file, &flags)?;
    let config =
        Config { quarantine: Quarantine::default(), probe: Probe::off(), ..Config::only(vec![library]) };
    let mut loaded = Loader::new(config).load_all(host::table(), host::take_message);
    let refused = install::install_all(&loaded.plugins);
    refused.into_iter().for_each(|rejected| loaded.refuse(rejected));
    Some(loaded)
}

fn twice(name: &str, device: Device) -> Vec<f32> {
    let t = TensorImpl::empty(&[3], DType::F32, device).unwrap();
    let bytes: Vec<u8> = [1.5f32, -2.0, 4.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    write_bytes(t.storage().unwrap(), 0, &bytes).unwrap();
    let op = find_op(&format!("twice_{name}")).unwrap();
    let made = call(Args { op, values: &[Arg::Tensor(&t)] }, Out::New).unwrap();
    let mut bytes = [0; 12];
    read_bytes(made[0].storage().unwrap(), 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
}

/// All tests of this program change one table of dispatch.
fn one_at_a_time() -> std::sync::MutexGuard<'static, ()> {
    table_support::load(&[])
}

#[test]
fn tables_of_any_size_load_and_run() {
    let _one = one_at_a_time();
    for (name, macros) in [("same", &[][..]), ("smaller", &["-DSMALLER"]), ("larger", &["-DLARGER"])] {
        let Some(loaded) = load(name, macros) else { return };
        assert!(loaded.rejected.is_empty(), "{name}: {:?}", loaded.rejected);
        let tables = loaded.plugins[0].tables();
        assert_eq!((tables.devices.len(), tables.layouts.len(), tables.ops.len()), (1, 1, 2), "{name}");
        // A host's structure without interposers is one without interposers.
        assert_eq!(tables.interposers.len(), usize::from(name != "smaller"), "{name}");
        assert_eq!((tables.layouts[0].precedence, tables.layout_ops.len()), (1, 0), "{name}");

        let device = Device::new(&format!("test.keyway/device-{name}"), 0).unwrap();
        for on in [Device::CPU, device] {
            assert_eq!(twice(name, on), [3.0, -4.0, 8.0], "{name} on {on}");
        }
        let said = properties(device).unwrap();
        let rest = if name == "smaller" { ("", false) } else { ("in C", true) };
        assert_eq!((said.units, said.total_memory), (7, 4096), "{name}");
        assert_eq!((said.name.as_str(), said.host_accessible), rest, "{name}");
        // Fields that none of these tables has are absent, regardless of the memory after the table.
        synchronize(device).unwrap();
        assert!(memory_stats(device).unwrap().is_none(), "{name}");
        Stream::new(device).unwrap().synchronize().unwrap();
    }
}

#[test]
fn each_fault_is_refused_with_the_table_and_the_field() {
    let _one = one_at_a_time();
    for (fault, parts) in [
        (1, &["expected the 3 kernels", "got 2: `lost T>T for cpu, strided, f32` has a record"][..]),
        (
            2,
            &[
                "expected the 2 kernels",
                "got 1: `twice_fault2 T>T for test.keyway/device-fault2, strided, f32`",
            ],
        ),
        (3, &["kernels[0]", "`struct_size` of at least 96", "got 8"]),
        (4, &["kernels[0]", "the function `run`", "a null pointer"]),
        (5, &["kernels[0]", "`op` in UTF-8"]),
        (6, &["devices[0]", "the function `allocate`", "a null pointer"]),
        (7, &["devices[0]", "`struct_size` of at least 88", "got 80"]),
        (8, &["entry[0]", "`struct_size` of at least 24", "got 8"]),
        (9, &["entry[0]", "the function `negotiate`", "a null pointer"]),
        (10, &["interfaces[0]", "the function `initialize`", "a null pointer"]),
        (11, &["kernels[0]", "a list of 2 entries", "the pointer 0x0"]),
        (12, &["devices[0]", "at most 1048576 entries"]),
        (13, &["manifest", "invalid type: integer `1`, expected a string"]),
        (14, &["within ABI 1", "got 9 from the plugin's negotiation"]),
        (15, &["interface 1 at ABI 1", "got none"]),
        (16, &["status 1: told to fail in C"]),
        (17, &["layouts[0]", "1 names in `components`", "the pointer 0x0"]),
        (23, &["kernels[0]", "a `dtype`", "an empty one"]),
        (24, &["interposers[0]", "the function `run`", "a null pointer"]),
        (25, &["contents[0]", "`struct_size` of at least 72", "got 0"]),
        (26, &["contents[0]", "`struct_size` of at most 136", "got 4000"]),
        (27, &["contents[0]", "`struct_size` of at least 72", "got 71"]),
        (29, &["interfaces[0]", "an `abi_version` within ABI 1", "got 7"]),
    ] {
        let name = format!("fault{fault}");
        let Some(loaded) = load(&name, &[&format!("-DFAULT={fault}")]) else { return };
        assert!(loaded.plugins.is_empty(), "fault {fault} must be refused");
        let text = loaded.rejected[0].to_string();
        assert!(text.contains(&name), "the library is not named: {text}");
        for part in parts {
            assert!(text.contains(part), "fault {fault}: `{part}` is missing in: {text}");
        }
        assert!(find_op(&format!("twice_{name}")).is_none(), "fault {fault} left an op");
    }
}

#[test]
fn what_cannot_be_registered_leaves_nothing_behind() {
    let _one = one_at_a_time();
    for (fault, parts) in [
        (18, &["to register the op `no schema`"][..]),
        (19, &["to register the op `twice_fault19`", "has defined an op of this name"]),
        (20, &["to register the interposer `watch-fault20-", "can be active at once"]),
    ] {
        let name = format!("fault{fault}");
        let before = (registry::plugins().len(), registry::kernels().len(), registry::layouts().len());
        let Some(loaded) = load(&name, &[&format!("-DFAULT={fault}")]) else { return };
        assert!(loaded.plugins.is_empty(), "fault {fault} must be refused");
        let text = loaded.rejected[0].to_string();
        assert!(parts.iter().all(|part| text.contains(part)) && text.contains(&name), "{text}");
        assert!(loaded.discovery.chosen().next().is_none(), "the verdict must be that it is refused");
        assert!(find_op(&format!("twice_{name}")).is_none(), "fault {fault} left an op");
        assert!(find_key(&format!("watch-{name}")).is_none(), "fault {fault} left an interposer");
        let after = (registry::plugins().len(), registry::kernels().len(), registry::layouts().len());
        assert_eq!(before, after, "fault {fault}");
        let device = Device::new(&format!("test.keyway/device-{name}"), 0).unwrap();
        assert!(properties(device).is_err(), "fault {fault} left a device");
        // The next publication of the table has no remains of it, either.
        registry::set_priority("nobody", 0);
        let t = table_support::zeros(&[2], DType::F32);
        table_support::one("test_composed", &t).unwrap();
    }
    // Its name and the keys of its interposers are free for another plugin.
    let Some(loaded) = load("fault19", &["-DLARGER"]) else { return };
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    assert_eq!(twice("fault19", Device::CPU), [3.0, -4.0, 8.0]);
}

#[test]
fn a_size_beyond_reason_and_a_signature_of_another_op_do_no_harm() {
    let _one = one_at_a_time();
    let Some(loaded) = load("fault21", &["-DFAULT=21"]) else { return };
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    assert_eq!(twice("fault21", Device::CPU), [3.0, -4.0, 8.0]);

    let Some(loaded) = load("fault22", &["-DFAULT=22"]) else { return };
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let op = find_op("twice_fault22").unwrap();
    let why = explain(op, Device::CPU, Layout::STRIDED, DType::F32);
    let reason = &why.candidates[0].reason;
    assert_eq!(reason, "it was written against `TT>T`, but the op is `T>T`");
}

#[test]
fn of_contents_that_are_shorter_nothing_beyond_their_size_is_read() {
    let _one = one_at_a_time();
    let Some(loaded) = load("fault28", &["-DFAULT=28"]) else { return };
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let tables = loaded.plugins[0].tables();
    assert_eq!((tables.devices.len(), tables.kernels.len(), tables.interposers.len()), (1, 2, 0));
    assert_eq!(
        (loaded.plugins[0].contents().interposers.len, loaded.plugins[0].contents().dtypes.len),
        (0, 0)
    );
    assert_eq!(twice("fault28", Device::CPU), [3.0, -4.0, 8.0]);
}

#[test]
fn an_unreasonable_result_of_a_rule_or_a_kernel_is_an_error_of_the_call() {
    let _one = one_at_a_time();
    for (fault, parts) in [
        (30, &["`ndim`", "at most 64", "1000000000"][..]),
        (31, &["`of`", "an argument index below 1", "1"]),
        (32, &["`tag`", "a code of `tag`", "99"]),
    ] {
        let name = format!("fault{fault}");
        let Some(loaded) = load(&name, &[&format!("-DFAULT={fault}")]) else { return };
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
        let t = table_support::zeros(&[3], DType::F32);
        let called = if fault == 32 { "twice" } else { "other" };
        let op = find_op(&format!("{called}_{name}")).unwrap();
        let text = call(Args { op, values: &[Arg::Tensor(&t)] }, Out::New).unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "fault {fault}: `{part}` is missing in: {text}");
        }
    }
}
