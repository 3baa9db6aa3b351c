//! An older host: tables cut to their least sizes, each in memory of exactly that size, so that a memory checker sees a
//! byte that is read or written beyond.

use keyway_sdk::__private::initialize;
use keyway_sdk::abi::codes::{dtype, name_kind, status};
use keyway_sdk::abi::host::{HostApi, ParallelBody};
use keyway_sdk::abi::plugin::PluginContents;
use keyway_sdk::abi::{RawStr, Table};
use keyway_sdk::author::{
    Arg, Contents, Error, Interposed, Interposer, MatmulPrecision, Scratch, call_op,
    float32_matmul_precision, host_api, new_tensor, num_threads,
};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Mutex;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn said() -> Vec<String> {
    std::mem::take(&mut SAID.lock().unwrap())
}

fn note(text: RawStr) {
    // SAFETY: the SDK keeps the bytes alive until the service returns.
    SAID.lock().unwrap().push(unsafe { text.read() }.into_owned());
}

unsafe extern "C" fn log(_level: u32, message: RawStr) {
    note(message);
}
unsafe extern "C" fn set_error(message: RawStr) {
    note(message);
}
unsafe extern "C" fn parallel_for(
    n: u64,
    _grain: u64,
    body: Option<ParallelBody>,
    context: *mut c_void,
) -> i32 {
    let Some(body) = body else { return status::FAILED };
    // SAFETY: the SDK passes a body for any range within `n` with its context.
    unsafe { body(context, 0, n) };
    status::OK
}
extern "C" fn threads() -> u32 {
    3
}
unsafe extern "C" fn intern(kind: u32, _name: RawStr) -> u16 {
    if kind == name_kind::DEVICE { 7 } else { u16::MAX }
}

struct Watch;
impl Interposer for Watch {
    const NAME: &'static str = "watch";
    fn run(call: &mut Interposed<'_>) -> Result<(), Error> {
        call.run_next()
    }
}
keyway_sdk::register_interposer!(Watch);

/// Words of memory of exactly `bytes` bytes, all of them `fill`.
fn words(bytes: usize, fill: u64) -> *mut u64 {
    vec![fill; bytes / 8].leak().as_mut_ptr()
}

fn setup(_contents: &mut Contents) -> Result<(), Error> {
    Ok(())
}

pub fn under_an_older_host() {
    let host: *mut HostApi = words(HostApi::MIN_SIZE, 0).cast();
    // Memory for the lists of this host, followed by one word that the plugin must not write.
    let contents = words(PluginContents::MIN_SIZE + 8, 0);
    let guard = 0x5a5a_5a5a_5a5a_5a5a;
    // SAFETY: every field written is within the minimum size of its table.
    let (code, written) = unsafe {
        (&raw mut (*host).struct_size).write(HostApi::MIN_SIZE as u32);
        (&raw mut (*host).abi_version).write(1);
        (&raw mut (*host).log).write(log);
        (&raw mut (*host).set_error).write(set_error);
        (&raw mut (*host).parallel_for).write(parallel_for);
        (&raw mut (*host).num_threads).write(threads);
        (&raw mut (*host).intern).write(intern);
        let out: *mut PluginContents = contents.cast();
        (&raw mut (*out).struct_size).write(PluginContents::MIN_SIZE as u32);
        contents.byte_add(offset_of!(PluginContents, interposers)).write(guard);
        let code = initialize(host, out, setup);
        (code, (&raw const (*out).struct_size).read())
    };
    assert_eq!((code, written as usize), (status::OK, PluginContents::MIN_SIZE));
    // SAFETY: the word is within the memory allocated above.
    let behind = unsafe { contents.byte_add(offset_of!(PluginContents, interposers)).read() };
    assert_eq!(behind, guard, "the memory behind the host's structure must stay as it is");
    let warned = said();
    assert!(warned.iter().any(|line| line.contains("older than interposers")), "{warned:?}");

    // The host's own values are returned.
    assert_eq!(num_threads(), 3);
    assert_eq!(float32_matmul_precision(), MatmulPrecision::Highest);
    assert_eq!(host_api().unwrap().struct_size as usize, HostApi::MIN_SIZE);
    // Missing services return `UNSUPPORTED`.
    let unsupported = Error::Host { status: status::UNSUPPORTED };
    assert_eq!(new_tensor(dtype::F32, 0, 0, &[2]).unwrap_err(), unsupported);
    assert_eq!(call_op("add", &[Arg::Int(1)]).unwrap_err(), unsupported);
    assert_eq!(Scratch::<f32>::zeroed(4).unwrap_err(), unsupported);
    let text = said();
    assert_eq!(text, vec!["the host is older than this service; update Keyway"; 3]);

    // A host without even the least table is refused before anything of it is used.
    for bytes in [0, 4, HostApi::MIN_SIZE - 8] {
        let host: *mut HostApi = words(bytes.next_multiple_of(8).max(8), 0).cast();
        // SAFETY: the memory holds the size and is as large as its size field; `contents` is as above.
        let code = unsafe {
            host.cast::<u32>().write(bytes as u32);
            initialize(host, contents.cast(), setup)
        };
        assert_eq!(code, status::INVALID_ARGUMENT, "{bytes}");
    }
    // SAFETY: a null table is one of the cases that `initialize` looks for.
    assert_eq!(unsafe { initialize(std::ptr::null(), contents.cast(), setup) }, status::INVALID_ARGUMENT);
    assert_eq!(num_threads(), 3, "the refused hosts must not have replaced the first");
}
