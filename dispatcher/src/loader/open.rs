//! Opens a library that passed every check, and adopts its tables.

use super::contents::{self, Tables};
use super::error::LoadError;
use super::manifest::{check_kernels, excerpt};
use super::opening::Opening;
use super::precheck::{Checked, FileId, check_abi, no_entry};
use super::reason::AbiRange;
use keyway_abi_root::KeywayRootRef;
use keyway_abi_root::abi_stable::library::{AbiHeaderRef, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use keyway_sdk::abi::codes::{interface, status};
use keyway_sdk::abi::host::HostApi;
use keyway_sdk::abi::plugin::{ENTRY_SYMBOL, EntryPoint, PluginApi, PluginContents, RawList};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::error::Error as _;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Longest text of another library's error that is repeated.
const MAX_DETAIL: usize = 400;

/// The contents of an opened library.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// The negotiated ABI version.
    pub abi_version: u32,
    /// The structure that `initialize` filled in.
    pub contents: &'static PluginContents,
    /// The checked tables, as references.
    pub tables: Tables,
}

// SAFETY: all that is reachable are immutable tables of function pointers and static strings, which the
// contract declares shareable; the structure itself is never written after `initialize`.
unsafe impl Send for Opened {}
// SAFETY: as for Send.
unsafe impl Sync for Opened {}

/// Libraries opened by this process, by canonical path. `dlopen` returns the earlier library for a known path even if the
/// file was replaced, and no library is initialised twice.
static OPENED: LazyLock<Mutex<HashMap<PathBuf, Known>>> = LazyLock::new(Mutex::default);

/// A library that this process opened; its contents are `None` if it could not be initialised.
struct Known {
    id: FileId,
    opened: Option<Opened>,
}

/// Opens `path` (canonical, checked) and initialises it with `host`. `take_error` returns and clears the message that the
/// plugin set with `HostApi::set_error`.
///
/// The library is loaded from `file`, the file that was checked. The descriptor stays open: the system's loader identifies
/// the library by the descriptor's name, and would confuse another file of this name with it.
pub fn open(
    path: &Path,
    checked: &Checked,
    file: File,
    host_abi: AbiRange,
    host: &'static HostApi,
    take_error: &dyn Fn() -> String,
) -> Result<Opened, LoadError> {
    // The lock is held throughout, so that two threads never initialise one library concurrently.
    let mut opened_before = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    match opened_before.get(path) {
        Some(known) if known.id != checked.id => return Err(LoadError::Replaced),
        Some(Known { opened: Some(opened), .. }) => return Ok(*opened),
        _ => {}
    }
    let _noted = Opening::begin(path, &checked.manifest.name);
    let entry = open_entry(path, checked, file)?;
    let known = opened_before.entry(path.to_path_buf()).or_insert(Known { id: checked.id, opened: None });
    let opened = initialize(entry, checked, host_abi, host, take_error)?;
    known.opened = Some(opened);
    Ok(opened)
}

/// The name by which the system's loader opens exactly this file; `None` if the system has no such names.
fn descriptor_name(file: &File) -> Option<PathBuf> {
    let name = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    (cfg!(target_os = "linux") && same(name.metadata().ok()?, file.metadata().ok()?)).then_some(name)
}

/// Whether this process opened the library at this path before.
pub fn is_open(path: &Path) -> bool {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
}

/// The two functions of a plugin's entry.
#[derive(Clone, Copy)]
struct Entry {
    negotiate: extern "C" fn(u32, u32) -> u32,
    get_interface: GetInterface,
}

#[derive(Clone, Copy)]
enum GetInterface {
    Own(extern "C" fn(u32, u32) -> *const c_void),
    AbiStable(extern "C" fn(u32, u32) -> *const u8),
}

impl Entry {
    fn interface(&self, id: u32, version: u32) -> *const c_void {
        match self.get_interface {
            GetInterface::Own(get) => get(id, version),
            GetInterface::AbiStable(get) => get(id, version).cast(),
        }
    }
}

/// Opens the library and finds its entry: the contract's symbol, otherwise the `abi_stable` root.
fn open_entry(path: &Path, checked: &Checked, file: File) -> Result<Entry, LoadError> {
    let by_descriptor = descriptor_name(&file).filter(|_| !checked.uses_origin());
    let name = by_descriptor.as_deref().unwrap_or(path);
    // SAFETY: opening runs the library's constructors. The loader opens only files that are whole libraries for this
    // machine, that carry a manifest, and that only trusted users could have written.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| classify(name, &error))?;
    std::mem::forget(file);
    // SAFETY: a data symbol of this name is an entry point, by the contract; it is only read below.
    let own = unsafe { library.get::<*const EntryPoint>(ENTRY_SYMBOL) }.ok().map(|symbol| *symbol);
    // SAFETY: the symbol is abi_stable's: in every version it begins with an `AbiHeader`.
    let header = unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL) }.ok().map(|s| *s);
    // The layout checker and every table of the plugin refer into the library, so it is never unmapped.
    std::mem::forget(library);
    if let Some(own) = own {
        // SAFETY: the library is never unmapped, and the symbol is constant data.
        let own = unsafe { contents::adopt(0, own) }?;
        return Ok(Entry { negotiate: own.negotiate, get_interface: GetInterface::Own(own.get_interface) });
    }
    let root = header
        .ok_or_else(no_entry)?
        .upgrade()
        .and_then(|header| header.init_root_module::<KeywayRootRef>())
        .map_err(|error| LoadError::BadRoot { detail: useful_part(&error.to_string()) })?;
    Ok(Entry { negotiate: root.negotiate(), get_interface: GetInterface::AbiStable(root.get_interface()) })
}

fn initialize(
    entry: Entry,
    checked: &Checked,
    host_abi: AbiRange,
    host: &'static HostApi,
    take_error: &dyn Fn() -> String,
) -> Result<Opened, LoadError> {
    let manifest = &checked.manifest;
    check_abi(manifest.abi(), host_abi)?;
    let common =
        AbiRange { min: manifest.abi_min.max(host_abi.min), max: manifest.abi_max.min(host_abi.max) };
    let version = (entry.negotiate)(host_abi.min, host_abi.max);
    if !(common.min..=common.max).contains(&version) {
        return Err(LoadError::AbiDisagrees { declared: common, answered: version });
    }
    let api: *const PluginApi = entry.interface(interface::PLUGIN, version).cast();
    if api.is_null() || !api.is_aligned() {
        return Err(LoadError::MissingInterface { interface: interface::PLUGIN, version });
    }
    // SAFETY: not null; by the contract of `get_interface` the table lives as long as the process.
    let api = unsafe { contents::adopt(0, api) }?;
    // A plugin that supports several versions may have one table for all of them.
    if !(manifest.abi_min..=manifest.abi_max).contains(&api.abi_version) {
        let expected = format!("an `abi_version` within {}, from the manifest,", manifest.abi());
        return Err(contents::bad::<PluginApi>(0, expected, api.abi_version.to_string()));
    }

    fn empty<T>() -> RawList<T> {
        RawList { items: std::ptr::null(), len: 0 }
    }
    // The plugin may store the address, so the structure lives as long as the process.
    let contents: *mut PluginContents = Box::leak(Box::new(PluginContents {
        struct_size: size_of::<PluginContents>() as u32,
        reserved: 0,
        devices: empty(),
        layouts: empty(),
        ops: empty(),
        kernels: empty(),
        interposers: empty(),
        dtypes: empty(),
        layout_ops: empty(),
        preferences: empty(),
    }));
    drop(take_error());
    // SAFETY: `host` lives as long as the process and `contents` is writable and has the size in its first field.
    let code = unsafe { (api.initialize)(at_version(host, version), contents) };
    // The text is copied immediately: the next call into the library may overwrite it.
    let message = take_error();
    match code {
        status::OK => {}
        status::PANICKED => {
            let message = message.strip_prefix("the plugin panicked: ").unwrap_or(&message);
            return Err(LoadError::Panicked { message: excerpt(message, MAX_DETAIL) });
        }
        status => return Err(LoadError::InitFailed { status, message: excerpt(&message, MAX_DETAIL) }),
    }
    // SAFETY: the structure is leaked and, after `initialize`, no longer written.
    let contents = unsafe { contents::adopt_filled(contents) }?;
    // SAFETY: the plugin upholds the contract of its lists.
    let tables = unsafe { contents::check(contents) }?;
    let handed_over =
        tables.kernels.iter().map(|k| [k.op, k.device, k.layout, k.dtype, k.signature].map(contents::text));
    check_kernels(&checked.kernels, handed_over)?;
    Ok(Opened { abi_version: version, contents, tables })
}

/// The host's table with the negotiated version in it.
fn at_version(host: &'static HostApi, version: u32) -> &'static HostApi {
    if host.abi_version == version {
        return host;
    }
    // SAFETY: the table is integers and function pointers only, so a bitwise copy is a copy.
    let copy = HostApi { abi_version: version, ..unsafe { std::ptr::read(host) } };
    Box::leak(Box::new(copy))
}

/// abi_stable prints a whole type layout before the actual error.
fn useful_part(text: &str) -> String {
    let tail = text.rsplit("Error:").next().unwrap_or(text);
    excerpt(tail.split_whitespace().collect::<Vec<_>>().join(" ").as_str(), MAX_DETAIL)
}

/// Classifies the error of the system's loader. libloading's own text only states that it failed.
fn classify(path: &Path, error: &libloading::Error) -> LoadError {
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    classify_text(&path.to_string_lossy(), &text)
}

fn classify_text(path: &str, text: &str) -> LoadError {
    let text = text.trim();
    let after = |mark: &str| text.split_once(mark).map(|(_, tail)| tail.trim());
    let word = |s: &str| s.split([',', ' ', ':']).next().unwrap_or_default().to_string();
    // glibc and musl: "undefined symbol: X", "Error relocating P: X: symbol not found".
    if let Some(tail) = after("undefined symbol: ") {
        return LoadError::UndefinedSymbol { symbol: word(tail), library: None };
    }
    if let Some((head, _)) = text.split_once(": symbol not found") {
        return LoadError::UndefinedSymbol {
            symbol: head.rsplit(' ').next().unwrap_or(head).to_string(),
            library: None,
        };
    }
    // "symbol X, version V not defined in file L with link time reference".
    if let (Some(symbol), Some(file)) = (after(": symbol "), after(" not defined in file ")) {
        return LoadError::UndefinedSymbol { symbol: word(symbol), library: Some(word(file)) };
    }
    // "L: version `V' not found (required by P)".
    if let (Some((library, _)), Some(version)) = (text.split_once(": version `"), after(": version `")) {
        let version = version.split('\'').next().unwrap_or_default();
        return LoadError::MissingDependency { library: format!("{library} with version {version}") };
    }
    // "L: cannot open shared object file: ...", musl: "Error loading shared library L: ...".
    let library =
        text.split_once(": cannot open shared object file").map(|(library, _)| library).or_else(|| {
            after("Error loading shared library ").map(|tail| tail.split(':').next().unwrap_or(tail))
        });
    match library {
        Some(library) if library != path => LoadError::MissingDependency { library: library.to_string() },
        _ => LoadError::Open { detail: excerpt(text, MAX_DETAIL) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_systems_loader_are_understood() {
        let undefined = |symbol: &str, library: Option<&str>| LoadError::UndefinedSymbol {
            symbol: symbol.to_string(),
            library: library.map(str::to_string),
        };
        let missing = |library: &str| LoadError::MissingDependency { library: library.to_string() };
        let cases = [
            ("/p/x.so: undefined symbol: foo", undefined("foo", None)),
            ("/p/x.so: undefined symbol: foo, version GLIBC_2.2.5", undefined("foo", None)),
            (
                "/p/x.so: symbol foo, version V1 not defined in file liby.so.1 with link time reference",
                undefined("foo", Some("liby.so.1")),
            ),
            ("Error relocating /p/x.so: foo: symbol not found", undefined("foo", None)),
            ("liby.so.1: cannot open shared object file: No such file or directory", missing("liby.so.1")),
            ("Error loading shared library liby.so.1: No such file or directory", missing("liby.so.1")),
            (
                "/lib/libc.so.6: version `GLIBC_2.99' not found (required by /p/x.so)",
                missing("/lib/libc.so.6 with version GLIBC_2.99"),
            ),
            (
                "/p/x.so: failed to map segment from shared object",
                LoadError::Open { detail: "/p/x.so: failed to map segment from shared object".to_string() },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(classify_text("/p/x.so", text), expected);
        }
    }

    #[test]
    fn only_the_useful_part_of_a_long_text_is_returned() {
        let text =
            format!("{}\nError: one\n{}Error:too many\n  fields", "layout ".repeat(9000), "x".repeat(60_000));
        assert_eq!(useful_part(&text), "too many fields");
        assert!(useful_part(&"y".repeat(70_000)).len() < 500);
    }
}
