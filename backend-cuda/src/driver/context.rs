//! A device's context, and the driver's functions on it. Each makes the context current for its thread first, since other
//! libraries in the process change it too.

use super::failure::{Failure, NOT_READY, OUT_OF_MEMORY, PEER_ALREADY, PEER_NOT};
use super::graph::Capturing;
use super::library::Library;
use super::{driver, failed};
use cudarc::driver::sys::{CUcontext, CUdevice, CUfunction, CUfunction_attribute, CUjit_option, CUmodule};
use keyway_sdk::Error;
use keyway_sdk::abi::device::Queue;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;

/// A function of a module, loaded into one context.
#[derive(Clone, Copy, Debug)]
pub struct Entry(CUfunction);

// SAFETY: a function's handle may be used from any thread.
unsafe impl Send for Entry {}
// SAFETY: as for Send.
unsafe impl Sync for Entry {}

/// The parameter of a kernel: one structure, as declared by `KERNEL` in kernels/keyway.cuh.
///
/// # Safety
/// The type is `repr(C)`, without significant padding, and has the fields of the C++ structure; its author upholds this,
/// and the emulator compares the sizes.
pub unsafe trait Argument: Copy {}

/// A device with its primary context, which other libraries of the process share.
pub struct Context {
    library: &'static Library,
    device: CUdevice,
    index: u32,
    context: OnceLock<Primary>,
    /// The reason why the device is lost, if it is.
    lost: OnceLock<String>,
    /// The names of recent launches; the newest is at `launches % RECENT`.
    recent: Mutex<Recent>,
    /// The streams whose work is captured.
    pub(super) capturing: Capturing,
}

#[derive(Clone, Copy)]
struct Primary(CUcontext);
// SAFETY: a context's handle may be used from any thread.
unsafe impl Send for Primary {}
// SAFETY: as for Send.
unsafe impl Sync for Primary {}

/// Number of recorded launches.
const RECENT: usize = 12;

#[derive(Default)]
struct Recent {
    names: [String; RECENT],
    launches: usize,
}

/// Attributes of a device.
#[derive(Clone, Copy)]
pub enum Attribute {
    Multiprocessors = 16,
    Major = 75,
    Minor = 76,
    MapsMemory = 102,
}

impl Context {
    /// Creates the context object of a device, without a call to the driver's context functions.
    pub fn new(index: u32) -> Result<Context, Error> {
        let driver = driver()?;
        let library = &driver.library;
        let mut device = 0;
        let number = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the out-pointer is valid, and the driver was started.
        unsafe { library.cuDeviceGet(&mut device, number) }.map_err(Failure::plain)?;
        let (context, lost) = (OnceLock::new(), OnceLock::new());
        let (recent, capturing) = (Mutex::default(), Capturing::default());
        Ok(Context { library, device, index, context, lost, recent, capturing })
    }

    /// The driver's handle of the device.
    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    /// The device's name.
    pub fn name(&self) -> Result<String, Error> {
        let mut name = [0 as c_char; 256];
        // SAFETY: the size is that of the buffer.
        unsafe { self.library.cuDeviceGetName(name.as_mut_ptr(), 256, self.device) }
            .map_err(|f| self.error(f))?;
        name[255] = 0;
        // SAFETY: the buffer ends with a 0.
        Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Total bytes of memory.
    pub fn total_memory(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        // SAFETY: the out-pointer is valid.
        unsafe { self.library.cuDeviceTotalMem_v2(&mut bytes, self.device) }.map_err(|f| self.error(f))?;
        Ok(bytes as u64)
    }

    /// The value of an attribute.
    pub fn attribute(&self, which: Attribute) -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: the out-pointer is valid, and the number is one of the interface's.
        unsafe { self.library.cuDeviceGetAttribute(&mut value, which as u32, self.device) }
            .map_err(|f| self.error(f))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// The primary context, retained at its first use.
    fn primary(&self) -> Result<CUcontext, Error> {
        if let Some(primary) = self.context.get() {
            return Ok(primary.0);
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid. If two threads both retain it, its reference count is 2; it is never released.
        unsafe { self.library.cuDevicePrimaryCtxRetain(&mut context, self.device) }
            .map_err(|f| self.error(f))?;
        Ok(self.context.get_or_init(|| Primary(context)).0)
    }

    /// Calls the driver with the context current.
    pub(super) fn call<T>(&self, work: impl FnOnce(&Library) -> Result<T, Failure>) -> Result<T, Error> {
        if super::is_forked() {
            driver()?;
        }
        if let Some(reason) = self.lost.get() {
            return Err(Error::DeviceLost { detail: reason.clone() });
        }
        let primary = self.primary()?;
        // SAFETY: the context was retained and is never released.
        unsafe { self.library.cuCtxSetCurrent(primary) }.map_err(|f| self.error(f))?;
        work(self.library).map_err(|failure| self.error(failure))
    }

    /// The error of a failure on this device.
    #[cold]
    fn error(&self, failure: Failure) -> Error {
        if failure.code == OUT_OF_MEMORY {
            return Error::OutOfMemory { requested: 0, available: 0 };
        }
        if !failure.is_lost() {
            return failed(format!("device {}: {failure}", self.index));
        }
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = (0..RECENT.min(recent.launches))
            .map(|back| recent.names[(recent.launches - back - 1) % RECENT].as_str())
            .collect();
        let flight = match names.is_empty() {
            true => "no kernel was launched".to_string(),
            false => format!("launched last, newest first: {}", names.join(", ")),
        };
        let reason = format!(
            "device {}: {failure}; {flight}. Kernels run after they are launched: CUDA_LAUNCH_BLOCKING=1 shows which one \
             it was. Nothing on this device can be used until the program is started anew",
            self.index
        );
        Error::DeviceLost { detail: self.lost.get_or_init(|| reason).clone() }
    }

    /// Waits for all work of the device.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.capturing.refuse_all("synchronisation of the device")?;
        // SAFETY: the context is current.
        self.call(|l| unsafe { l.cuCtxSynchronize() })
    }

    /// Bytes that the driver can still allocate.
    pub fn free_memory(&self) -> Result<u64, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both out-pointers are valid.
        self.call(|l| unsafe { l.cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    /// Allocates memory that any stream may use immediately.
    pub fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let mut at = 0;
        // SAFETY: the out-pointer is valid.
        self.call(|l| unsafe { l.cuMemAlloc_v2(&mut at, bytes as usize) })?;
        Ok(at)
    }

    /// Frees memory of [`Context::allocate`], after all work of the device.
    pub fn free(&self, at: u64) -> Result<(), Error> {
        self.capturing.refuse_all("memory that goes back to the driver")?;
        // SAFETY: the driver reports an unknown address as an error.
        self.call(|l| unsafe { l.cuMemFree_v2(at) })
    }

    /// Allocates memory from the driver's pool, in stream order.
    pub fn allocate_on(&self, bytes: u64, stream: Queue) -> Result<u64, Error> {
        let mut at = 0;
        // SAFETY: the out-pointer is valid, and the stream lives, as the host upholds.
        self.call(|l| unsafe { l.cuMemAllocAsync(&mut at, bytes as usize, stream.cast()) })?;
        Ok(at)
    }

    /// Frees memory of [`Context::allocate_on`], in stream order.
    pub fn free_on(&self, at: u64, stream: Queue) -> Result<(), Error> {
        // SAFETY: as for `free`; the stream lives.
        self.call(|l| unsafe { l.cuMemFreeAsync(at, stream.cast()) })
    }

    /// Allocates page-locked host memory that every context may use.
    pub fn allocate_pinned(&self, bytes: u64) -> Result<*mut c_void, Error> {
        const PORTABLE: u32 = 1;
        let mut at = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        self.call(|l| unsafe { l.cuMemHostAlloc(&mut at, bytes as usize, PORTABLE) })?;
        Ok(at)
    }

    /// # Safety
    /// `at` was returned by [`Context::allocate_pinned`], and is no longer used.
    pub unsafe fn free_pinned(&self, at: *mut c_void) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        self.call(|l| unsafe { l.cuMemFreeHost(at) })
    }

    /// Enqueues a copy from the host.
    ///
    /// # Safety
    /// `from` is valid for `bytes` bytes: if it is page-locked, until the stream is synchronised, otherwise during the
    /// call.
    pub unsafe fn copy_in(
        &self,
        to: u64,
        from: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // A captured copy would later read memory that has another owner by then.
        self.capturing.refuse(stream, "a copy from memory of the host that is not pinned")?;
        // SAFETY: as the caller guarantees.
        unsafe { self.copy_in_pinned(to, from, bytes, stream) }
    }

    /// As [`Context::copy_in`], from page-locked memory, also during a capture.
    ///
    /// # Safety
    /// `from` is valid for `bytes` bytes until the stream is synchronised, and for the lifetime of a graph that captures
    /// this.
    pub unsafe fn copy_in_pinned(
        &self,
        to: u64,
        from: *const c_void,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        self.call(|l| unsafe { l.cuMemcpyHtoDAsync_v2(to, from, bytes as usize, stream.cast()) })
    }

    /// Enqueues a copy to the host.
    ///
    /// # Safety
    /// `to` is valid for `bytes` bytes, and uniquely owned, until the stream is synchronised.
    pub unsafe fn copy_out(
        &self,
        to: *mut c_void,
        from: u64,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        self.capturing.refuse(stream, "a copy to the host, as of a value that is read,")?;
        // SAFETY: as the caller guarantees.
        unsafe { self.copy_out_pinned(to, from, bytes, stream) }
    }

    /// As [`Context::copy_out`], to page-locked memory, also during a capture.
    ///
    /// # Safety
    /// As for [`Context::copy_out`], and `to` is valid for the lifetime of a graph that captures this.
    pub unsafe fn copy_out_pinned(
        &self,
        to: *mut c_void,
        from: u64,
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        // SAFETY: as the caller guarantees.
        self.call(|l| unsafe { l.cuMemcpyDtoHAsync_v2(to, from, bytes as usize, stream.cast()) })
    }

    /// Enqueues a copy within the device.
    pub fn copy_within(&self, to: u64, from: u64, bytes: u64, stream: Queue) -> Result<(), Error> {
        // SAFETY: device memory, which the driver checks; the stream lives.
        self.call(|l| unsafe { l.cuMemcpyDtoDAsync_v2(to, from, bytes as usize, stream.cast()) })
    }

    /// Enqueues a copy from another device on a stream of this one.
    pub fn copy_across(
        &self,
        to: u64,
        (other, from): (&Context, u64),
        bytes: u64,
        stream: Queue,
    ) -> Result<(), Error> {
        let (own, others) = (self.primary()?, other.primary()?);
        // SAFETY: as for `copy_within`; both contexts are never released.
        self.call(|l| unsafe { l.cuMemcpyPeerAsync(to, own, from, others, bytes as usize, stream.cast()) })
    }

    /// Creates a stream that does not synchronise with other streams.
    pub fn new_stream(&self) -> Result<Queue, Error> {
        const NON_BLOCKING: u32 = 1;
        let mut stream = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        self.call(|l| unsafe { l.cuStreamCreate(&mut stream, NON_BLOCKING) })?;
        Ok(stream.cast())
    }

    /// Destroys a stream; its queued work still completes.
    pub fn destroy_stream(&self, stream: Queue) -> Result<(), Error> {
        // SAFETY: the host passes a stream of `new_stream`, once.
        self.call(|l| unsafe { l.cuStreamDestroy_v2(stream.cast()) })
    }

    /// Whether a stream is being captured.
    pub fn captures(&self, stream: Queue) -> bool {
        self.capturing.has(stream)
    }

    /// Synchronises with a stream.
    pub fn synchronize_stream(&self, stream: Queue) -> Result<(), Error> {
        self.capturing.refuse(stream, "synchronisation of it")?;
        // SAFETY: the stream lives.
        self.call(|l| unsafe { l.cuStreamSynchronize(stream.cast()) })
    }

    /// Creates an event.
    pub fn new_event(&self) -> Result<Queue, Error> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid; with timing, as the host requires.
        self.call(|l| unsafe { l.cuEventCreate(&mut event, 0) })?;
        Ok(event.cast())
    }

    /// Destroys an event; a stream that waits for it still does.
    pub fn destroy_event(&self, event: Queue) -> Result<(), Error> {
        // SAFETY: the host passes an event of `new_event`, once.
        self.call(|l| unsafe { l.cuEventDestroy_v2(event.cast()) })
    }

    /// Records an event in a stream.
    pub fn record(&self, event: Queue, stream: Queue) -> Result<(), Error> {
        // SAFETY: both live.
        self.call(|l| unsafe { l.cuEventRecord(event.cast(), stream.cast()) })
    }

    /// Makes a stream of this device wait for an event of any device.
    pub fn wait(&self, event: Queue, stream: Queue) -> Result<(), Error> {
        // SAFETY: both live.
        self.call(|l| unsafe { l.cuStreamWaitEvent(stream.cast(), event.cast(), 0) })
    }

    /// Whether an event has completed.
    pub fn query(&self, event: Queue) -> Result<bool, Error> {
        self.call(|l| {
            // SAFETY: the event lives.
            match unsafe { l.cuEventQuery(event.cast()) } {
                Err(failure) if failure.code == NOT_READY => Ok(false),
                other => other.map(|()| true),
            }
        })
    }

    /// Synchronises with an event.
    pub fn synchronize_event(&self, event: Queue) -> Result<(), Error> {
        // SAFETY: the event lives.
        self.call(|l| unsafe { l.cuEventSynchronize(event.cast()) })
    }

    /// Milliseconds between two events.
    pub fn elapsed(&self, from: Queue, to: Queue) -> Result<f32, Error> {
        let mut milliseconds = 0.0;
        // SAFETY: the out-pointer is valid, and both events live.
        self.call(|l| unsafe { l.cuEventElapsedTime(&mut milliseconds, from.cast(), to.cast()) })?;
        Ok(milliseconds)
    }

    /// Whether this device can access another one's memory.
    pub fn can_access(&self, peer: &Context) -> Result<bool, Error> {
        let mut can = 0;
        // SAFETY: the out-pointer is valid.
        self.call(|l| unsafe { l.cuDeviceCanAccessPeer(&mut can, self.device, peer.device) })?;
        Ok(can != 0)
    }

    /// Enables or disables access of this device to the memory of another one; no effect if that is the current state.
    pub fn set_access(&self, peer: &Context, enabled: bool) -> Result<(), Error> {
        let other = peer.primary()?;
        self.call(|l| {
            // SAFETY: both contexts are never released.
            match unsafe {
                if enabled { l.cuCtxEnablePeerAccess(other, 0) } else { l.cuCtxDisablePeerAccess(other) }
            } {
                Err(failure) if matches!(failure.code, PEER_ALREADY | PEER_NOT) => Ok(()),
                done => done,
            }
        })
    }

    /// Loads an image and resolves its entry point. The module is never unloaded.
    pub fn load(&self, image: &CStr, name: &CStr) -> Result<Entry, Error> {
        const LOG: usize = 4096;
        let mut log = vec![0u8; LOG];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG - 1)];
        let mut module: CUmodule = std::ptr::null_mut();
        let loaded = self.call(|l| {
            // SAFETY: the image is NUL-terminated; the options and values are two each, and the log has the given size.
            unsafe {
                l.cuModuleLoadDataEx(
                    &mut module,
                    image.as_ptr().cast(),
                    2,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            }
        });
        let name_shown = name.to_string_lossy();
        loaded.map_err(|error| match error {
            Error::Failed { detail } => {
                let said = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
                failed(format!("the image of `{name_shown}` cannot be loaded: {detail}. {}", said.trim()))
            }
            other => other,
        })?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid, the module was just loaded, and the name is NUL-terminated.
        self.call(|l| unsafe { l.cuModuleGetFunction(&mut function, module, name.as_ptr()) })?;
        Ok(Entry(function))
    }

    /// Allows launches of an entry to use this number of bytes of dynamic shared memory per block.
    pub fn allow_shared(&self, entry: Entry, bytes: u32) -> Result<(), Error> {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32;
        // SAFETY: the entry was loaded into this context and is never unloaded; the driver refuses more than the maximum.
        self.call(|l| unsafe { l.cuFuncSetAttribute(entry.0, attribute, bytes) })
    }

    /// Makes the context current, for another NVIDIA library that uses it.
    pub fn enter(&self) -> Result<(), Error> {
        self.call(|_| Ok(()))
    }

    /// Records a launch, for the error message of a lost device.
    pub fn remember(&self, name: &str) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.launches % RECENT;
        recent.names[at].clear();
        recent.names[at].push_str(name);
        recent.launches += 1;
    }

    /// Launches a kernel with these numbers of blocks, threads per block, and bytes of dynamic shared memory, which may
    /// exceed 48 KiB only after [`Context::allow_shared`].
    pub fn launch<A: Argument>(
        &self,
        (entry, name): (Entry, &str),
        (blocks, threads, shared): ([u32; 2], u32, u32),
        argument: &A,
        stream: Queue,
    ) -> Result<(), Error> {
        self.remember(name);
        let mut parameters = [std::ptr::from_ref(argument).cast_mut().cast::<c_void>()];
        self.call(|l| {
            // SAFETY: the kernel takes one structure of this type, which the driver copies before it returns; the stream
            // lives, and so does the memory that the structure names until the stream is done, as the host upholds.
            unsafe {
                l.cuLaunchKernel(
                    entry.0,
                    blocks[0],
                    blocks[1],
                    1,
                    threads,
                    1,
                    1,
                    shared,
                    stream.cast(),
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
        })
    }
}
