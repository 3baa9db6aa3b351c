//! Tests of the trust in code: links, run paths of libraries, and files that are swapped.

#[path = "../../plugin-sdk/tests/c_compiler/mod.rs"]
mod c_compiler;
mod loader_support;

use c_compiler::Language;
use keyway_dispatcher::host;
use keyway_dispatcher::loader::{Distrust, LoadError, Loaded, Loader};
use loader_support::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A plugin in C, and a library that it needs, in `folder`; `flags` say where that is looked for.
fn needing_another(folder: &Folder, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = folder.path().join("needed.c");
    std::fs::write(&source, "int needed(void); int needed(void) { return 7; }").unwrap();
    let needed = folder.path().join("libneeded.so");
    let (source, out) = (source.to_str().unwrap(), needed.to_str().unwrap());
    if !needed.exists() && !c_compiler::compile(Language::C, &["-shared", "-fPIC", "-o", out, source]) {
        return None;
    }
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/plugin.c");
    let (named, search) = (format!("-DNAME=\"{name}\""), format!("-L{}", folder.path().display()));
    let all: Vec<&str> = [named.as_str(), "-Wl,--no-as-needed", &search, "-lneeded"]
        .into_iter()
        .chain(flags.iter().copied())
        .collect();
    let built = c_compiler::plugin(&plugin, name, &all)?;
    let placed = folder.add(&format!("{name}.so"), &std::fs::read(built).unwrap());
    private(&needed);
    Some(placed)
}

fn load_one(path: &Path) -> Loaded {
    Loader::new(config(vec![path.into()])).load_all(host::table(), host::take_message)
}

#[test]
fn a_library_finds_files_beside_it() {
    let folder = Folder::empty();
    let Some(plugin) = needing_another(&folder, "origin", &["-Wl,-rpath,$ORIGIN"]) else { return };
    let loaded = load_one(&plugin);
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    assert!(
        maps.contains(folder.path().join("libneeded.so").to_str().unwrap()) || !cfg!(target_os = "linux")
    );
}

#[test]
fn a_run_path_into_a_folder_that_others_may_write_is_refused() {
    let folder = Folder::empty();
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
    for (name, run_path, part) in [
        ("open", open.to_str().unwrap().to_string(), "lets everybody"),
        ("inner", format!("$ORIGIN:{}/missing", open.display()), "lets everybody"),
        ("relative", "lib".to_string(), "working directory"),
    ] {
        let Some(plugin) = needing_another(&folder, name, &[&format!("-Wl,-rpath,{run_path}")]) else {
            return;
        };
        let loaded = load_one(&plugin);
        let [rejected] = &loaded.rejected[..] else { panic!("{name}: {:?}", loaded.plugins) };
        assert!(
            matches!(rejected.error, LoadError::Untrusted { why: Distrust::RunPath { .. } }),
            "{rejected}"
        );
        let text = rejected.to_string();
        assert!(text.contains(part) && text.contains("build it without that run path"), "{text}");
    }
}

#[test]
fn files_of_a_run_path_are_trusted_as_a_library_is() {
    let (folder, open) = (Folder::empty(), Folder::empty());
    let Some(plugin) = needing_another(&folder, "beside", &["-Wl,-rpath,$ORIGIN"]) else { return };
    let needed = folder.path().join("libneeded.so");
    let why = || match &load_one(&plugin).rejected[..] {
        [rejected] => rejected.to_string(),
        other => panic!("{other:?}"),
    };
    std::fs::set_permissions(&needed, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(why().contains(needed.to_str().unwrap()) && why().contains("lets everybody"), "{}", why());
    // A link of ours into a folder of everybody's.
    let elsewhere = open.add("libneeded.so", &std::fs::read(&needed).unwrap());
    std::fs::remove_file(&needed).unwrap();
    symlink(&elsewhere, &needed).unwrap();
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(why().contains("lets everybody"), "{}", why());
    private(open.path());
    assert!(load_one(&plugin).rejected.is_empty());
}

#[test]
fn a_library_for_a_better_processor_is_trusted_as_the_plain_one() {
    let folder = Folder::empty();
    let Some(plugin) = needing_another(&folder, "hwcaps", &["-Wl,-rpath,$ORIGIN"]) else { return };
    let level = folder.path().join("glibc-hwcaps/x86-64-v2");
    std::fs::create_dir_all(&level).unwrap();
    private(level.parent().unwrap());
    private(&level);
    std::fs::copy(folder.path().join("libneeded.so"), level.join("libneeded.so")).unwrap();
    private(&level.join("libneeded.so"));
    assert!(load_one(&plugin).rejected.is_empty());
    let Some(plugin) = needing_another(&folder, "hwcaps_open", &["-Wl,-rpath,$ORIGIN"]) else { return };
    std::fs::set_permissions(level.join("libneeded.so"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let [rejected] = &load_one(&plugin).rejected[..] else { panic!("loaded") };
    let text = rejected.to_string();
    assert!(
        text.contains("glibc-hwcaps/x86-64-v2/libneeded.so") && text.contains("lets everybody"),
        "{text}"
    );
}

#[test]
fn what_a_needed_library_needs_is_trusted_as_the_library_is() {
    let (folder, open) = (Folder::empty(), Folder::empty());
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let Some(plugin) = needing_another(&folder, "deeper", &["-Wl,-rpath,$ORIGIN"]) else { return };
    let source = folder.path().join("needed.c");
    let needed = folder.path().join("libneeded.so");
    let run_path = format!("-Wl,-rpath,{}", open.path().display());
    let arguments = ["-shared", "-fPIC", &run_path, "-o", needed.to_str().unwrap(), source.to_str().unwrap()];
    assert!(c_compiler::compile(Language::C, &arguments));
    private(&needed);
    let [rejected] = &load_one(&plugin).rejected[..] else { panic!("loaded") };
    let text = rejected.to_string();
    assert!(text.contains(open.path().to_str().unwrap()) && text.contains("lets everybody"), "{text}");
    private(open.path());
    assert!(load_one(&plugin).rejected.is_empty());
}

#[test]
fn a_filter_in_the_working_directory_is_refused() {
    let folder = Folder::empty();
    for (name, flag) in [("auxiliary", "-Wl,-f,./libfilter.so"), ("filter", "-Wl,-F,./libfilter.so")] {
        let Some(plugin) = needing_another(&folder, name, &["-Wl,-rpath,$ORIGIN", flag]) else { return };
        let loaded = load_one(&plugin);
        let [rejected] = &loaded.rejected[..] else { panic!("{name}: {:?}", loaded.plugins) };
        assert!(rejected.to_string().contains("working directory"), "{rejected}");
    }
}

#[test]
fn a_link_in_a_folder_that_others_may_write_is_refused() {
    let (sound, open) = (Folder::new(), Folder::empty());
    let link = open.path().join("a.so");
    symlink(sound.add("a.so", &minimal()), &link).unwrap();
    assert_eq!(load(config(vec![link.clone()])).plugins.len(), 1);
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let loaded = load(config(vec![link, sound.path().into()]));
    let path = open.path().canonicalize().unwrap();
    let error = LoadError::Untrusted { why: Distrust::WritableByOthers { path, mode: 0o777 } };
    assert_eq!(loaded.rejected[0].error, error);
    assert_eq!(loaded.plugins.len(), 2, "the library itself is sound");
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_is_loaded_from_the_file_that_was_checked() {
    let folder = Folder::new();
    let path = folder.add("a.so", &minimal());
    assert_eq!(load(folder.config()).plugins.len(), 2);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let held = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path)).count();
    assert_eq!(held, 1, "its descriptor stays open, and no other does");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains(path.to_str().unwrap()));
}
