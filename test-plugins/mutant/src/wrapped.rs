//! The backend that is wrapped: its kernels, found by op and dtype.

use keyway_abi_root::KeywayRootRef;
use keyway_abi_root::abi_stable::library::{AbiHeaderRef, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use keyway_sdk::Error;
use keyway_sdk::abi::codes::{interface, status};
use keyway_sdk::abi::op::RawKernel;
use keyway_sdk::abi::plugin::{PluginApi, PluginContents, RawList};
use keyway_sdk::abi::tensor::KernelFn;
use keyway_sdk::author::host_api;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

/// The variable with the path of the library to wrap.
const PATH: &str = "KEYWAY_MUTANT_OF";

type Table = HashMap<(String, String), KernelFn>;

/// The kernels of the wrapped library, by op and dtype, or the reason why there are none.
static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();

/// The kernel for this op and dtype on strided tensors of the CPU.
///
/// # Errors
/// The library cannot be opened, or has no such kernel.
pub fn kernel(op: &str, dtype: &str) -> Result<KernelFn, Error> {
    let failed = |detail: String| Error::Failed { detail };
    let table = TABLE.get_or_init(load).as_ref().map_err(|e| failed(e.clone()))?;
    let found = table.get(&(op.to_string(), dtype.to_string())).copied();
    found.ok_or_else(|| failed(format!("the wrapped backend has no kernel of {op} for {dtype}")))
}

fn load() -> Result<Table, String> {
    let host = host_api().ok_or("the host has not initialised this library")?;
    let path = std::env::var_os(PATH).ok_or_else(|| format!("{PATH} names no library to wrap"))?;
    let path = Path::new(&path).canonicalize().map_err(|e| format!("{PATH}: {e}"))?;
    let root = open(&path)?;
    let version = host.abi_version;
    let api: *const PluginApi = root.get_interface()(interface::PLUGIN, version).cast();
    // SAFETY: the contract of `get_interface`: null, or valid for the life of the process.
    let api = unsafe { api.as_ref() }.ok_or("the wrapped library has no interface of this ABI")?;
    let contents = Box::leak(Box::new(empty_contents()));
    // The host has initialised this library already; with the same host the SDK's `initialize` only creates its lists
    // again.
    // SAFETY: `host` lives as long as the process and `contents` is leaked and as large as its size field.
    match unsafe { (api.initialize)(host, contents) } {
        status::OK => {}
        code => return Err(format!("the wrapped library answered {code} to `initialize`")),
    }
    // SAFETY: a plugin's lists live as long as the process.
    let kernels = unsafe { kernels(&contents.kernels) };
    Ok(kernels.into_iter().filter_map(entry).collect())
}

/// Opens the library as the host's loader does. The path is the one that the host has loaded, so this is the same
/// instance, which the host has checked.
fn open(path: &Path) -> Result<KeywayRootRef, String> {
    // SAFETY: the constructors of the library ran when the host loaded it.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| format!("{}: {error}", path.display()))?;
    // SAFETY: the symbol is abi_stable's: in every version it begins with an `AbiHeader`.
    let header = unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL) }
        .map(|symbol| *symbol)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    std::mem::forget(library);
    header
        .upgrade()
        .and_then(|header| header.init_root_module::<KeywayRootRef>())
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn empty_contents() -> PluginContents {
    fn empty<T>() -> RawList<T> {
        RawList { items: std::ptr::null(), len: 0 }
    }
    PluginContents {
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
    }
}

/// # Safety
/// The list must be that of a plugin, which keeps it for the life of the process.
unsafe fn kernels(list: &RawList<RawKernel>) -> Vec<&'static RawKernel> {
    if list.items.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller guarantees `len` pointers to kernels.
    let items = unsafe { std::slice::from_raw_parts(list.items, list.len) };
    // SAFETY: as above.
    items.iter().map(|&kernel| unsafe { &*kernel }).collect()
}

fn entry(kernel: &'static RawKernel) -> Option<((String, String), KernelFn)> {
    // SAFETY: the names are static strings of the wrapped library.
    let [op, dtype, device, layout] = [kernel.op, kernel.dtype, kernel.device, kernel.layout]
        .map(|name| unsafe { name.read() }.into_owned());
    (device == "cpu" && layout == "strided").then_some(((op, dtype), kernel.run))
}
