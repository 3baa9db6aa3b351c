//! The driver's functions, resolved once, with their names for error messages.

use super::failure::Failure;
use super::{failed, find};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUjit_option,
    CUmemAccessDesc, CUmemAllocationProp, CUmemGenericAllocationHandle, CUmodule, CUstream,
};
use keyway_sdk::Error;
use std::ffi::{CStr, c_char, c_float, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

/// Defines a table of functions. Error codes are integers: a newer driver has more of them than the enum.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {
        #[allow(non_snake_case)]
        pub struct Library {
            $($name: unsafe extern "C" fn($($type),*) -> c_uint,)+
            describe_name: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            describe_text: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            _file: libloading::Library,
        }

        impl Library {
            /// Opens the driver and resolves every function.
            pub fn open(path: &Path) -> Result<Library, Error> {
                // SAFETY: the driver is the system's, or a file that its owner alone may write; its initialisers are
                // trusted.
                let file = unsafe { libloading::Library::new(path) }.map_err(|error| find::absent(path, &reason(&error)))?;
                macro_rules! find {
                    ($symbol:expr) => {
                        // SAFETY: the types are those of the driver's interface, as `cudarc` declares it.
                        *unsafe { file.get($symbol) }.map_err(|_| failed(format!(
                            "the driver ({}) has no {}: it is too old; update NVIDIA's driver to 575 or newer",
                            path.display(), $symbol,
                        )))?
                    };
                }
                Ok(Library {
                    $($name: find!(stringify!($name)),)+
                    describe_name: find!("cuGetErrorName"),
                    describe_text: find!("cuGetErrorString"),
                    _file: file,
                })
            }

            $(
                /// # Safety
                /// As documented by the driver for the function of this name; the caller upholds it.
                #[allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's functions as they are")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Failure> {
                    // SAFETY: as the caller guarantees.
                    let code = unsafe { (self.$name)($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(self.failure(stringify!($name), code)) }
                }
            )+
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, index: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxSynchronize();
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuCtxDisablePeerAccess(peer: CUcontext);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(at: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(at: CUdeviceptr);
    cuMemAllocAsync(at: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(at: CUdeviceptr, stream: CUstream);
    cuMemGetAllocationGranularity(bytes: *mut usize, of: *const CUmemAllocationProp, which: c_uint);
    cuMemAddressReserve(at: *mut CUdeviceptr, bytes: usize, alignment: usize, wanted: CUdeviceptr, flags: u64);
    cuMemAddressFree(at: CUdeviceptr, bytes: usize);
    cuMemCreate(memory: *mut CUmemGenericAllocationHandle, bytes: usize, of: *const CUmemAllocationProp, flags: u64);
    cuMemRelease(memory: CUmemGenericAllocationHandle);
    cuMemMap(at: CUdeviceptr, bytes: usize, offset: usize, memory: CUmemGenericAllocationHandle, flags: u64);
    cuMemUnmap(at: CUdeviceptr, bytes: usize);
    cuMemSetAccess(at: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize);
    cuMemHostAlloc(at: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(at: *mut c_void);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyPeerAsync(
        to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, stream: CUstream
    );
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: u64);
    cuGraphDestroy(graph: CUgraph);
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(executable: CUgraphExec);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventSynchronize(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut c_float, from: CUevent, to: CUevent);
    cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    );
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuFuncSetAttribute(function: CUfunction, attribute: c_uint, value: c_int);
    cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
}

/// The loader's error: its message is the source of the error.
pub fn reason(error: &libloading::Error) -> String {
    let inner = std::error::Error::source(error).map(ToString::to_string);
    inner.unwrap_or_else(|| error.to_string())
}

impl Library {
    /// The file that the loader opened.
    pub fn file(&self) -> Option<PathBuf> {
        find::file_of(self.cuInit as *const c_void)
    }

    /// Returns the CUDA version of the driver.
    pub fn version(&self, version: &mut c_int) -> Result<(), Failure> {
        // SAFETY: the out-pointer is valid; this function may be called before `cuInit`.
        unsafe { self.cuDriverGetVersion(version) }
    }

    /// Initialises the driver.
    pub fn start(&self) -> Result<(), Failure> {
        // SAFETY: 0 is the only valid value of the flags.
        unsafe { self.cuInit(0) }
    }

    /// The number of devices.
    pub fn device_count(&self, count: &mut c_int) -> Result<(), Failure> {
        // SAFETY: the out-pointer is valid, and the driver was started.
        unsafe { self.cuDeviceGetCount(count) }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Failure {
        let text = |describe: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint| {
            let mut text = std::ptr::null();
            // SAFETY: the out-pointer is valid; the driver returns a string with its own lifetime.
            match unsafe { describe(code, &mut text) } {
                // SAFETY: as above.
                0 if !text.is_null() => Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()),
                _ => None,
            }
        };
        Failure {
            call,
            code,
            name: text(self.describe_name).unwrap_or_else(|| "an error without a name".into()),
            text: text(self.describe_text).unwrap_or_else(|| "the driver does not describe it".into()),
        }
    }
}

// SAFETY: the driver's functions may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as for Send.
unsafe impl Sync for Library {}
