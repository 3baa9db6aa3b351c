//! Folders of libraries, sound and damaged, and a host that offers nothing.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway_dispatcher::loader::{Config, Loaded, Loader, Probe, Quarantine};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::host::HostApi;
use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

thread_local! {
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The message of the last call into a plugin.
pub fn take_error() -> String {
    ERROR.with_borrow_mut(std::mem::take)
}

unsafe extern "C" fn log(_level: u32, _message: RawStr) {}
unsafe extern "C" fn set_error(message: RawStr) {
    // SAFETY: the plugin keeps the bytes alive until this returns.
    let text = unsafe { message.read() }.into_owned();
    ERROR.with_borrow_mut(|slot| *slot = text);
}
unsafe extern "C" fn intern(_kind: u32, _name: RawStr) -> u16 {
    // The contract has it served during `initialize`; no test here looks at the number.
    0
}
extern "C" fn not_offered() {
    eprintln!("the plugin called a service that the host of these tests does not offer");
    std::process::abort();
}

/// A host that takes log lines and error texts, names everything 0, and offers nothing else. However many services the table
/// has, each other one ends the test program.
pub static HOST: LazyLock<&'static HostApi> = LazyLock::new(|| {
    let words: &'static mut [usize] =
        vec![not_offered as extern "C" fn() as usize; size_of::<HostApi>() / size_of::<usize>()].leak();
    let host: *mut HostApi = words.as_mut_ptr().cast();
    // SAFETY: the memory has the table's size and alignment and is uniquely owned; after the two leading integers the table has
    // only function pointers, and every word is one.
    unsafe {
        (&raw mut (*host).struct_size).write(size_of::<HostApi>() as u32);
        (&raw mut (*host).abi_version).write(1);
        (&raw mut (*host).log).write(log);
        (&raw mut (*host).set_error).write(set_error);
        (&raw mut (*host).intern).write(intern);
        &*host
    }
});

/// Cargo leaves the libraries of dev-dependencies beside the test program.
pub fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().join(format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ))
}

/// The bytes of the smallest plugin.
pub fn minimal() -> Vec<u8> {
    std::fs::read(built("keyway_test_minimal")).unwrap()
}

/// The bytes of the plugin that fails where it is told to.
pub fn faulty() -> Vec<u8> {
    std::fs::read(built("keyway_test_faulty")).unwrap()
}

/// The offset of the first occurrence of `part` in `bytes`.
pub fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// `bytes` with every `from` replaced by `to`, of the same length.
pub fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut out = bytes.to_vec();
    let mut at = 0;
    let mut count = 0;
    while let Some(next) = find(&out[at..], from) {
        out[at + next..at + next + to.len()].copy_from_slice(to);
        at += next + to.len();
        count += 1;
    }
    assert!(count > 0, "{:?} is not in the library", String::from_utf8_lossy(from));
    out
}

/// Like [`patched`], but only the first occurrence: the dynamic string table comes before all others.
pub fn patched_in_dynstr(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = find(bytes, from).expect("the name is in the library's dynamic strings");
    let mut out = bytes.to_vec();
    out[at..at + to.len()].copy_from_slice(to);
    out
}

/// The library with its list of processor features replaced by `feature` besides what it has; an empty
/// `feature` gives an empty list.
pub fn needing(bytes: &[u8], feature: &str) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let start = find(bytes, b"{\"name\":\"").expect("the manifest is in the library");
    let length = u32::from_le_bytes(bytes[start - 4..start].try_into().unwrap()) as usize;
    let mut manifest: serde_json::Value = serde_json::from_slice(&bytes[start..start + length]).unwrap();
    manifest["cpu_features"] =
        if feature.is_empty() { serde_json::json!([]) } else { serde_json::json!([feature]) };
    // The description is cleared for the space.
    manifest["description"] = "".into();
    let text = serde_json::to_string(&manifest).unwrap();
    assert!(text.len() <= length, "the manifest has no room for {feature}");
    out[start..start + length].fill(b' ');
    out[start..start + text.len()].copy_from_slice(text.as_bytes());
    out
}

/// Removes all permissions of others, for any umask.
pub fn private(path: &Path) {
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder of libraries that is removed at the end of the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder without libraries.
    pub fn empty() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        private(folder.path());
        Folder(folder)
    }

    /// A folder with one sound plugin, `z.so`.
    pub fn new() -> Folder {
        let folder = Folder::empty();
        folder.add("z.so", &faulty());
        folder
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its canonical path.
    pub fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        // A new file each time: writing into one that is mapped would change running code.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        private(&path);
        path.canonicalize().unwrap()
    }

    /// Searches this folder only, with no quarantine.
    pub fn config(&self) -> Config {
        config(vec![self.path().into()])
    }
}

/// Searches these paths only, with no quarantine.
pub fn config(paths: Vec<PathBuf>) -> Config {
    Config { quarantine: Quarantine::default(), probe: Probe::off(), ..Config::only(paths) }
}

/// Loads with the host of these tests.
pub fn load(config: Config) -> Loaded {
    Loader::new(config).load_all(*HOST, take_error)
}
