//! The loader against sound and damaged libraries. Every damaged file is made from a sound one by changing
//! bytes, and a sound plugin beside it must still load.

mod loader_support;

use keyway_dispatcher::loader::{
    AbiRange, Cause, Config, CpuFeatures, Discovery, Distrust, HandedOver, LoadError, Loader, PassedOver,
    Quarantine, QuarantineRecord, SameAs, SearchOrigin, SearchPaths, Skipped, Verdict, trust,
};
use loader_support::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Loads the folder and expects: the sound plugin beside works, one file is rejected.
fn rejected(folder: &Folder) -> LoadError {
    rejected_by(folder.config())
}

fn rejected_by(config: Config) -> LoadError {
    let loaded = load(config);
    let names: Vec<&str> = loaded.plugins.iter().map(|p| p.manifest.name.as_str()).collect();
    assert_eq!(names, ["keyway.test/faulty"], "the sound plugin must load: {:?}", loaded.rejected);
    assert_eq!(loaded.rejected.len(), 1, "{:?}", loaded.rejected);
    let error = loaded.rejected[0].error.clone();
    let text = loaded.rejected[0].to_string();
    assert!(text.contains(".so"), "the path is missing: {text}");
    assert!(serde_json::to_string(&loaded).unwrap().contains("\"message\":\""), "the report must serialise");
    error
}

/// Every text says what was expected, what came and what to do.
fn assert_says(error: &LoadError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
    assert!(text.contains("expected"), "{text}");
    assert!(text.contains("got") || text.contains("but it"), "{text}");
    assert!(text.contains("; "), "the next step is missing: {text}");
}

#[test]
fn a_sound_plugin_loads_and_hands_over_its_kernel() {
    let folder = Folder::new();
    folder.add("a.so", &minimal());
    let loaded = load(folder.config());
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    assert_eq!(loaded.plugins.len(), 2);
    let plugin = &loaded.plugins[0];
    assert_eq!(plugin.manifest.name, "keyway.test/minimal");
    assert_eq!(plugin.manifest.devices, ["cpu"]);
    assert_eq!(plugin.abi_version, 1);
    let kernels = plugin.tables().kernels;
    assert_eq!(kernels.len(), 1);
    // SAFETY: the loader checked the names of every kernel.
    assert_eq!(unsafe { kernels[0].op.read() }, "test_nothing");
    assert_eq!(plugin.kernel_records[0].op, "test_nothing");
    assert_eq!(plugin.contents().kernels.len, 1);
    assert_eq!(plugin.sha256().unwrap().len(), 64);
    assert_eq!(loaded.plugins[1].tables().kernels.len(), 10);
}

#[test]
fn discovery_reads_the_manifest_without_opening_the_library() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    let discovery = Loader::new(folder.config()).discover();
    assert_eq!(discovery.chosen().count(), 2);
    let checked = discovery.candidates[0].checked.as_ref().unwrap();
    assert_eq!(checked.kernels[0].dtypes, ["f32"]);
    assert!(checked.needed.iter().any(|l| l.starts_with("libc.so")), "{:?}", checked.needed);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(!maps.contains(file.to_str().unwrap()), "discovery must not map the library");
}

#[test]
fn loading_twice_gives_the_same_tables() {
    let folder = Folder::new();
    let first = load(folder.config());
    let second = load(folder.config());
    assert!(std::ptr::eq(first.plugins[0].contents(), second.plugins[0].contents()));
}

#[test]
fn another_file_at_an_opened_path_is_refused() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    assert_eq!(load(folder.config()).plugins.len(), 2);
    // A rename, as an installer does: the opened library keeps its old file.
    let next = folder.add("next", &minimal());
    std::fs::rename(next, file).unwrap();
    let error = rejected(&folder);
    assert_eq!(error, LoadError::Replaced);
    assert_says(&error, &["start the program again"]);
}

#[test]
fn an_empty_file() {
    let folder = Folder::new();
    folder.add("a.so", b"");
    let error = rejected(&folder);
    assert_eq!(error, LoadError::Empty);
    assert_says(&error, &["shared library", "empty", "build"]);
}

#[test]
fn a_text_file() {
    let folder = Folder::new();
    folder.add("a.so", b"not a library\n");
    let error = rejected(&folder);
    assert!(matches!(error, LoadError::NotALibrary { .. }));
    assert_says(
        &error,
        &["ELF shared library", "a text file that begins with \"not a library", "name the built library"],
    );
}

#[test]
fn files_of_other_systems_and_no_files_at_all() {
    let cases: [(&[u8], &str); 2] =
        [(b"MZ\x90\0\x03\0\0\0", "Windows"), (&[0xcf, 0xfa, 0xed, 0xfe], "macOS")];
    for (bytes, part) in cases {
        let folder = Folder::new();
        folder.add("a.so", bytes);
        assert_says(&rejected(&folder), &[part]);
    }
    let folder = Folder::new();
    std::os::unix::fs::symlink(folder.path().join("nowhere"), folder.path().join("a.so")).unwrap();
    assert!(matches!(rejected(&folder), LoadError::Unreadable { .. }));
}

#[test]
fn a_pipe_does_not_block() {
    let folder = Folder::new();
    let path = std::ffi::CString::new(folder.path().join("a.so").to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string that lives until the call returns.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o644) }, 0);
    let error = rejected(&folder);
    assert_says(&error, &["regular file", "pipe"]);
}

#[test]
fn truncated_at_ten_sizes() {
    let whole = minimal();
    let sizes = [
        1,
        16,
        63,
        64,
        4096,
        whole.len() / 4,
        whole.len() / 2,
        whole.len() * 3 / 4,
        whole.len() - 64,
        whole.len() - 1,
    ];
    for size in sizes {
        let folder = Folder::new();
        folder.add("a.so", &whole[..size]);
        let error = rejected(&folder);
        if size < 4 {
            // Too short even for the magic number.
            assert!(matches!(error, LoadError::NotALibrary { .. }), "{size}: {error}");
        } else {
            let LoadError::Truncated { expected, got } = error else { panic!("{size}: {error}") };
            assert_eq!(got, size as u64);
            assert!(expected > got && expected <= whole.len() as u64, "{size}: {expected}");
            assert_says(&error, &["truncated", "copy or build"]);
        }
    }
}

#[test]
fn another_architecture() {
    for (machine, name) in [(22u16, "s390x"), (8, "mips"), (0x1234, "ELF machine 4660")] {
        let mut bytes = minimal();
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        let folder = Folder::new();
        folder.add("a.so", &bytes);
        let error = rejected(&folder);
        assert!(matches!(error, LoadError::WrongArchitecture { .. }), "{error}");
        assert_says(&error, &[name, std::env::consts::ARCH, "for this machine"]);
    }
}

#[test]
fn a_library_without_a_manifest() {
    let folder = Folder::new();
    // The name in the table of section names; the record itself stays.
    folder.add("a.so", &patched(&minimal(), b".note.keyway\0", b".note.kexway\0"));
    let error = rejected(&folder);
    assert_eq!(error, LoadError::NoManifest { section: ".note.keyway".to_string() });
    assert_says(&error, &["keyway_sdk::plugin!"]);
}

#[test]
fn a_damaged_manifest() {
    let cases: [(&[u8], &[u8]); 4] = [
        (b"KEYWAY\0\x01", b"KEYWAY\0\x02"),
        (b"{\"name\"", b"<\"name\""),
        (b"\"priority\":0", b"\"priority\":-"),
        (b"One kernel", b"One \xff\xfernel"),
    ];
    for (from, to) in cases {
        let folder = Folder::new();
        folder.add("a.so", &patched(&minimal(), from, to));
        let error = rejected(&folder);
        assert!(matches!(error, LoadError::BadManifest { .. }), "{error}");
        assert_says(&error, &["manifest", "build the plugin again"]);
    }
}

#[test]
fn an_older_abi() {
    let folder = Folder::new();
    folder.add("a.so", &minimal());
    // The other plugin is given the range of the host: the host of this test is the newer one.
    folder.add("b.so", &patched(&faulty(), b"\"abi_min\":1,\"abi_max\":1", b"\"abi_min\":1,\"abi_max\":3"));
    let mut config = folder.config();
    config.host_abi = AbiRange { min: 2, max: 3 };
    let discovery = Loader::new(config).discover();
    let error = verdict(&discovery, "a.so");
    assert_eq!(
        error,
        Verdict::Rejected(LoadError::AbiTooOld {
            plugin: AbiRange { min: 1, max: 1 },
            host: AbiRange { min: 2, max: 3 }
        })
    );
    let Verdict::Rejected(error) = error else { unreachable!() };
    assert_says(&error, &["ABI 2 to 3", "older ABI 1", "newer `keyway-sdk`"]);
    assert_eq!(verdict(&discovery, "b.so"), Verdict::Chosen);
}

#[test]
fn a_newer_abi() {
    let folder = Folder::new();
    folder.add("a.so", &patched(&minimal(), b"\"abi_min\":1,\"abi_max\":1", b"\"abi_min\":7,\"abi_max\":9"));
    let error = rejected(&folder);
    let range = AbiRange { min: 7, max: 9 };
    assert_eq!(error, LoadError::AbiTooNew { plugin: range, host: AbiRange { min: 1, max: 1 } });
    assert_says(&error, &["ABI 1", "newer ABI 7 to 9", "update Keyway"]);
}

#[test]
fn a_negotiation_that_disagrees_with_the_manifest() {
    let folder = Folder::new();
    folder.add("a.so", &patched(&minimal(), b"\"abi_min\":1,\"abi_max\":1", b"\"abi_min\":2,\"abi_max\":2"));
    let mut config = folder.config();
    config.host_abi = AbiRange { min: 1, max: 2 };
    let error = rejected_by(config);
    assert_eq!(error, LoadError::AbiDisagrees { declared: AbiRange { min: 2, max: 2 }, answered: 1 });
    assert_says(&error, &["ABI 2", "got 1"]);
}

/// The number of kernels in the records and in the table, one that is only in one of the two, and in which.
fn differing(bytes: &[u8]) -> (u64, u64, String, HandedOver) {
    let folder = Folder::new();
    folder.add("a.so", bytes);
    let error = rejected(&folder);
    assert_says(&error, &["test_nothin", "build the library again"]);
    match error {
        LoadError::KernelsDiffer { recorded, handed_over, kernel, what } => {
            (recorded, handed_over, kernel, what)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_kernel_with_a_record_that_is_not_handed_over() {
    // The record then names two dtypes, but only one kernel is registered, as if the linker had dropped an item.
    let mut bytes = minimal();
    // 33 bytes of text, padded to 36.
    let at = find(&bytes, b"test_nothing T>T cpu strided f32,\0\0\0").unwrap();
    bytes[at..at + 36].copy_from_slice(b"test_nothing T>T cpu strided f32,u8,");
    bytes[at - 4..at].copy_from_slice(&36u32.to_le_bytes());
    let kernel = "test_nothing T>T for cpu, strided, u8".to_string();
    assert_eq!(differing(&bytes), (2, 1, kernel, HandedOver::Recorded));
}

#[test]
fn a_kernel_without_a_record() {
    // As after a tool that removes sections it does not know.
    let bytes = patched(&minimal(), b".note.keyway.k\0", b".note.keyway.x\0");
    let kernel = "test_nothing T>T for cpu, strided, f32".to_string();
    assert_eq!(differing(&bytes), (0, 1, kernel, HandedOver::Unrecorded));
}

#[test]
fn as_many_records_as_kernels_but_other_ones() {
    let bytes =
        patched(&minimal(), b"test_nothing T>T cpu strided f32,", b"test_nothinh T>T cpu strided f32,");
    let kernel = "test_nothing T>T for cpu, strided, f32".to_string();
    assert_eq!(differing(&bytes), (1, 1, kernel, HandedOver::Unrecorded));
}

#[test]
fn the_optional_fields_of_a_manifest_arrive() {
    let folder = Folder::new();
    folder.add("a.so", &std::fs::read(built("keyway_test_empty")).unwrap());
    let loaded = load(folder.config());
    let find = |name: &str| &loaded.plugins.iter().find(|p| p.manifest.name == name).unwrap().manifest;
    let (given, left_out) = (find("keyway.test/empty"), find("keyway.test/faulty"));
    assert_eq!((given.priority, left_out.priority), (-12, 0));
    assert_eq!(given.compatible_with, ["keyway.test/device", "other.example/plugin"]);
    assert!(left_out.compatible_with.is_empty() && left_out.needs.is_empty());
    assert!(given.devices.is_empty() && given.layouts.is_empty());
}

#[test]
fn without_the_loader_symbol() {
    let without_root = patched(&minimal(), b"_1as_0lib_1header", b"_1as_0lib_1hexder");
    let without_entry = |bytes: &[u8]| patched(bytes, b"keyway_plugin_v1", b"kexway_plugin_v1");
    let folder = Folder::new();
    folder.add("a.so", &without_entry(&without_root));
    let error = rejected(&folder);
    assert!(matches!(error, LoadError::MissingSymbol { .. }), "{error}");
    assert_says(&error, &["keyway_plugin_v1", "_1as_0lib_1header_0root_bmodule_bloader", "cdylib"]);
    // One of the two is enough.
    for bytes in [without_root, without_entry(&minimal())] {
        let folder = Folder::new();
        folder.add("a.so", &bytes);
        let loaded = load(folder.config());
        assert_eq!((loaded.plugins.len(), loaded.rejected.len()), (2, 0), "{:?}", loaded.rejected);
        assert_eq!(loaded.plugins[0].tables().kernels.len(), 1);
    }
}

#[test]
fn with_an_undefined_symbol() {
    let folder = Folder::new();
    folder.add("a.so", &patched_in_dynstr(&minimal(), b"\0getenv\0", b"\0gexenv\0"));
    let error = rejected(&folder);
    assert!(matches!(&error, LoadError::UndefinedSymbol { symbol, .. } if symbol == "gexenv"), "{error}");
    assert_says(&error, &["`gexenv`", "install the library"]);
}

#[test]
fn with_a_missing_dependency() {
    let folder = Folder::new();
    folder.add("a.so", &patched_in_dynstr(&minimal(), b"\0libgcc_s.so.1\0", b"\0libgcx_s.so.1\0"));
    let error = rejected(&folder);
    assert_eq!(error, LoadError::MissingDependency { library: "libgcx_s.so.1".to_string() });
    assert_says(&error, &["`libgcx_s.so.1`", "install it"]);
}

#[test]
fn the_same_file_twice() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    let of = file.clone();
    std::fs::hard_link(&file, folder.path().join("c.so")).unwrap();
    assert_eq!(rejected_duplicate(&folder), LoadError::Duplicate { of: of.clone(), same: SameAs::File });
    std::fs::remove_file(folder.path().join("c.so")).unwrap();
    std::os::unix::fs::symlink(&file, folder.path().join("c.so")).unwrap();
    let error = rejected_duplicate(&folder);
    assert_eq!(error, LoadError::Duplicate { of, same: SameAs::File });
    assert_says(&error, &["once", "the same file", "remove one"]);
}

#[test]
fn a_copy_and_another_build_of_the_same_plugin() {
    let folder = Folder::new();
    let of = folder.add("a.so", &minimal());
    folder.add("c.so", &minimal());
    assert_eq!(rejected_duplicate(&folder), LoadError::Duplicate { of: of.clone(), same: SameAs::Content });
    folder.add("c.so", &patched(&minimal(), b"One kernel that", b"Two kernel that"));
    assert_eq!(rejected_duplicate(&folder), LoadError::Duplicate { of, same: SameAs::Plugin });
}

#[test]
fn a_copy_in_a_later_path_is_passed_over_and_another_build_is_used() {
    let (first, second) = (Folder::empty(), Folder::empty());
    let used = first.add("a.so", &minimal());
    second.add("b.so", &minimal());
    let both = config(vec![first.path().into(), second.path().into()]);
    let copy = Verdict::PassedOver(PassedOver::Copy { used: used.clone() });
    assert_eq!(verdict(&Loader::new(both.clone()).discover(), "b.so"), copy);
    second.add("b.so", &patched(&minimal(), b"One kernel that", b"Two kernel that"));
    let earlier = PassedOver::EarlierPath { version: "0.1.0".to_string(), older: false, used };
    assert_eq!(verdict(&Loader::new(both.clone()).discover(), "b.so"), Verdict::PassedOver(earlier));
    first.add("a.so", &patched_in_dynstr(&minimal(), b"\0getenv\0", b"\0gexenv\0"));
    let loaded = load(both);
    assert_eq!((loaded.plugins.len(), loaded.rejected.len()), (1, 1), "{:?}", loaded.rejected);
    assert_eq!(verdict(&loaded.discovery, "b.so"), Verdict::Chosen);
}

fn rejected_duplicate(folder: &Folder) -> LoadError {
    let loaded = load(folder.config());
    assert_eq!(loaded.plugins.len(), 2, "{:?}", loaded.rejected);
    assert_eq!(loaded.rejected.len(), 1);
    loaded.rejected[0].error.clone()
}

#[test]
fn a_file_that_others_may_write() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = rejected(&folder);
    assert_eq!(error, LoadError::Untrusted { why: Distrust::WritableByOthers { path: file, mode: 0o666 } });
    assert_says(&error, &["0666", "chmod o-w"]);
}

#[test]
fn a_folder_that_others_may_write() {
    let sound = Folder::new();
    let open = Folder::empty();
    open.add("a.so", &minimal());
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = rejected_by(config(vec![open.path().into(), sound.path().into()]));
    let path = open.path().canonicalize().unwrap();
    assert_eq!(error, LoadError::Untrusted { why: Distrust::WritableByOthers { path, mode: 0o777 } });
    assert_says(&error, &["chmod o-w"]);
}

#[test]
fn a_file_of_a_foreign_owner() {
    let folder = Folder::new();
    folder.add("a.so", &minimal());
    let mut config = folder.config();
    config.trust.owners = vec![u32::MAX - 1];
    let discovery = Loader::new(config).discover();
    let Verdict::Rejected(error) = verdict(&discovery, "a.so") else { panic!("must be refused") };
    assert!(matches!(error, LoadError::Untrusted { why: Distrust::ForeignOwner { .. } }), "{error}");
    assert_says(&error, &["belongs to user", "install the library"]);
}

#[test]
fn a_hash_that_differs_from_the_recorded_one() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    let hash = trust::sha256_file(&file).unwrap();
    std::fs::write(trust::record_path(&file), format!("{hash}  a.so\n")).unwrap();
    assert_eq!(load(folder.config()).plugins.len(), 2);
    std::fs::write(trust::record_path(&file), format!("{}  a.so\n", "ab".repeat(32))).unwrap();
    let error = rejected(&folder);
    assert!(
        matches!(&error, LoadError::Untrusted { why: Distrust::HashChanged { got, .. } } if *got == hash)
    );
    assert_says(&error, &[&"ab".repeat(32), &hash, "install the library again"]);
}

#[test]
fn a_quarantined_library() {
    let folder = Folder::new();
    let file = folder.add("a.so", &minimal());
    let mut config = folder.config();
    config.quarantine = Quarantine { folder: Some(folder.path().join("state")) };
    let failed = QuarantineRecord::of(&file, Cause::Crash, "illegal instruction in set-up").unwrap();
    let record = config.quarantine.add(&failed).unwrap();
    let error = rejected_by(config.clone());
    let reason = "illegal instruction in set-up".to_string();
    assert_eq!(error, LoadError::Quarantined { cause: Cause::Crash, reason, record });
    assert_says(&error, &["clear the record"]);
    config.quarantine.clear_all().unwrap();
    assert_eq!(load(config).plugins.len(), 2);
}

#[test]
fn processor_features_that_are_not_there() {
    let folder = Folder::new();
    folder.add("a.so", &needing(&minimal(), "avx999"));
    let error = rejected(&folder);
    assert_eq!(error, LoadError::CpuFeatures { missing: vec!["avx999".to_string()] });
    assert_says(&error, &["a processor with avx999", "variant"]);
}

#[test]
fn the_best_variant_for_the_processor_is_chosen() {
    let folder = Folder::empty();
    let variant = |name: &str, feature: &str| {
        let bytes = needing(&minimal(), feature);
        let at = find(&bytes, b"\"variant\":\"").unwrap() + b"\"variant\":\"".len();
        let mut bytes = bytes;
        bytes[at..at + 3].copy_from_slice(name.as_bytes());
        bytes
    };
    folder.add("a.so", &variant("v_2", ""));
    folder.add("b.so", &variant("v_3", "good"));
    folder.add("c.so", &variant("v_4", "best"));
    let mut config = folder.config();
    let base: Vec<String> = CpuFeatures::detect().names().map(str::to_string).collect();
    config.cpu = CpuFeatures::from_names(base.iter().cloned().chain(["good".to_string()]));
    let discovery = Loader::new(config.clone()).discover();
    assert_eq!(verdict(&discovery, "b.so"), Verdict::Chosen);
    let needs = PassedOver::NeedsFeatures { missing: vec!["best".to_string()] };
    assert_eq!(verdict(&discovery, "c.so"), Verdict::PassedOver(needs));
    assert!(matches!(verdict(&discovery, "a.so"), Verdict::PassedOver(PassedOver::BetterVariant { .. })));
    // A chosen build that does not open is replaced by the next best.
    let broken = patched_in_dynstr(&variant("v_3", "good"), b"\0getenv\0", b"\0gexenv\0");
    folder.add("b.so", &broken);
    let loaded = load(config);
    assert_eq!(loaded.plugins.len(), 1);
    assert!(loaded.plugins[0].path.ends_with("a.so"));
    assert!(matches!(loaded.rejected[..], [ref r] if matches!(r.error, LoadError::UndefinedSymbol { .. })));
    assert_eq!(verdict(&loaded.discovery, "a.so"), Verdict::Chosen);
}

#[test]
fn the_first_path_wins_and_the_highest_version_within_a_path() {
    let (first, second) = (Folder::empty(), Folder::empty());
    let version = |text: &[u8; 5]| {
        patched(&minimal(), b"\"version\":\"0.1.0\"", &[b"\"version\":\"", &text[..], b"\""].concat())
    };
    first.add("a.so", &version(b"0.2.0"));
    first.add("b.so", &version(b"0.9.0"));
    second.add("c.so", &version(b"1.0.0"));
    let discovery = Loader::new(config(vec![first.path().into(), second.path().into()])).discover();
    assert_eq!(verdict(&discovery, "b.so"), Verdict::Chosen);
    assert!(matches!(verdict(&discovery, "a.so"), Verdict::PassedOver(PassedOver::OtherVersion { .. })));
    assert!(matches!(verdict(&discovery, "c.so"), Verdict::PassedOver(PassedOver::EarlierPath { .. })));
}

#[test]
fn nothing_installed_names_every_path() {
    let empty = Folder::empty();
    let mut config = config(vec![]);
    config.search = SearchPaths {
        environment: vec![empty.path().into(), "relative".into()],
        program: Some(empty.path().join("bin/keyway")),
        ..SearchPaths::default()
    };
    let loaded = load(config);
    assert!(loaded.plugins.is_empty() && loaded.rejected.is_empty());
    let error = loaded.discovery.nothing_found().unwrap();
    let backends = empty.path().join("backends");
    assert_says(&error, &[backends.to_str().unwrap(), "KEYWAY_BACKEND_PATH", "install a backend"]);
    assert_eq!(loaded.discovery.searched[1].skipped, Some(Skipped::NotAbsolute));
}

#[test]
fn a_named_path_that_is_not_there_is_an_error() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.so");
    let error = rejected_by(config(vec![missing.clone(), folder.path().into()]));
    assert_eq!(error, LoadError::NotFound { tried: vec![missing] });
    // A link to itself exists, but the system cannot follow it.
    let loop_path = folder.path().join("loop");
    std::os::unix::fs::symlink(&loop_path, &loop_path).unwrap();
    let loaded = load(config(vec![loop_path, folder.path().into()]));
    assert_eq!(loaded.plugins.len(), 1);
    assert!(matches!(loaded.rejected[..], [ref r] if matches!(r.error, LoadError::Unreadable { .. })));
}

#[test]
fn backends_beside_a_moved_program_are_found() {
    let dist = Folder::empty();
    std::fs::create_dir_all(dist.path().join("backends")).unwrap();
    std::fs::write(dist.path().join("backends/a.so"), minimal()).unwrap();
    private(&dist.path().join("backends"));
    private(&dist.path().join("backends/a.so"));
    let mut config = config(vec![]);
    config.search = SearchPaths { program: Some(dist.path().join("bin/keyway")), ..SearchPaths::default() };
    let loaded = load(config);
    assert_eq!(loaded.plugins.len(), 1, "{:?}", loaded.rejected);
    assert_eq!(loaded.discovery.candidates[0].origin, SearchOrigin::Program);
}

#[test]
fn damage_anywhere_in_the_headers_gives_an_answer() {
    let whole = minimal();
    let folder = Folder::empty();
    let config = folder.config();
    // The headers, and the tables that the reader follows. A fixed sequence, so that a failure repeats.
    let section_table = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..300 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bytes = whole.clone();
        for i in 0..1 + round % 4 {
            let r = (state >> (8 * i)) as usize;
            let at =
                if round % 2 == 0 { r % 1024 } else { section_table + r % (whole.len() - section_table) };
            bytes[at] = (state >> 40) as u8;
        }
        folder.add("a.so", &bytes);
        let discovery: Discovery = Loader::new(config.clone()).discover();
        assert_eq!(discovery.candidates.len(), 1);
    }
}

fn verdict(discovery: &Discovery, name: &str) -> Verdict {
    let candidate = discovery.candidates.iter().find(|c| c.found_as.ends_with(Path::new(name)));
    candidate.unwrap_or_else(|| panic!("{name} was not found")).verdict.clone()
}
