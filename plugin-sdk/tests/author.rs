//! A plugin whose root module has items with the names that the macros might use: the macros' items do not conflict with them,
//! and the author's expressions refer to the author's items.

#![allow(non_camel_case_types)]

use keyway_sdk::__private::{KernelItems, KeywayRootRef, PluginApi, PluginContents, abi_stable, inventory};
use keyway_sdk::abi::Table;
use keyway_sdk::abi::codes::interface;
use keyway_sdk::abi::host::HostApi;
use keyway_sdk::abi::plugin::RawList;
use keyway_sdk::author::{Call, Contents, Error};
use std::sync::atomic::{AtomicU32, Ordering};

static API: AtomicU32 = AtomicU32::new(0);
static ROOT: u32 = 7;
static MANIFEST: &str = "mine";
static KERNELS: [u8; 2] = [1, 2];
static RECORD: u8 = 3;
const PARTS: u32 = 4;
const FLAGS: u32 = 5;
const SETUP: u32 = 6;
const PRIORITY: i32 = -20;

mod p {
    pub(super) const VALUE: u32 = 1;
}
struct core;
enum Result {
    Mine,
}

fn initialize() -> u32 {
    1
}
fn negotiate() -> u32 {
    2
}
fn get_interface() -> u32 {
    3
}
fn root() -> u32 {
    4
}
fn erased_root() -> u32 {
    5
}
fn shim(_: &Call<'_>) -> std::result::Result<(), Error> {
    Ok(())
}

fn setup(_: &mut Contents) -> std::result::Result<(), Error> {
    let own = initialize() + negotiate() + get_interface() + root() + erased_root() + p::VALUE;
    API.store(own, Ordering::Relaxed);
    Ok(())
}

keyway_sdk::plugin! {
    name: "keyway.test/names",
    version: env!("CARGO_PKG_VERSION"),
    description: "Has the names that the macros might have",
    devices: ["cpu"],
    priority: PRIORITY,
    setup: setup,
}

keyway_sdk::register_kernel! {
    op: "test_names", signature: "T>T", device: "cpu", layout: "strided",
    f32 => shim,
    f64 => |call| {
        API.store(KERNELS.len() as u32 + u32::from(RECORD) + PARTS + FLAGS + SETUP + ROOT, Ordering::Relaxed);
        shim(call)
    },
}

unsafe extern "C" {
    #[link_name = "_1as_0lib_1header_0root_bmodule_bloader"]
    static EXPORTED: u8;
}

fn empty<T>() -> RawList<T> {
    RawList { items: std::ptr::null(), len: 0 }
}

extern "C" fn not_offered() {
    eprintln!("the plugin called a service that the host of this test does not offer");
    std::process::abort();
}

#[test]
fn the_authors_names_are_the_authors_and_the_plugin_is_whole() {
    let gathered: usize = inventory::iter::<KernelItems>.into_iter().map(|items| items.kernels.len()).sum();
    assert_eq!(gathered, 2);

    // SAFETY: the symbol is the header that `plugin!` exports in this executable.
    let header = unsafe { &*(&raw const EXPORTED).cast::<abi_stable::library::LibHeader>() };
    let root = header.init_root_module::<KeywayRootRef>().unwrap();
    assert_eq!(root.negotiate()(1, 9), 1);
    let api = root.get_interface()(interface::PLUGIN, 1).cast::<PluginApi>();
    let mut contents = PluginContents {
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
    };
    // A host of the least size whose every service ends the test: this plugin asks for none.
    let words: &'static mut [usize] =
        vec![not_offered as extern "C" fn() as usize; HostApi::MIN_SIZE / size_of::<usize>()].leak();
    let host: *mut HostApi = words.as_mut_ptr().cast();
    // SAFETY: the host's memory is as large as the size that is written to it and lives as long as the process, the table
    // is static, and `contents` is as large as its size field.
    let status = unsafe {
        (&raw mut (*host).struct_size).write(HostApi::MIN_SIZE as u32);
        ((*api).initialize)(host, &mut contents)
    };
    assert_eq!((status, contents.kernels.len), (0, 2));
    assert_eq!(API.load(Ordering::Relaxed), 16, "`setup` is the author's");
    assert_eq!((MANIFEST, matches!(Result::Mine, Result::Mine), size_of::<core>()), ("mine", true, 0));
}
