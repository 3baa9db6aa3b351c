//! Convolutions by NVIDIA's cuDNN, if it is installed: the only module that calls it.
//!
//! Convolutions that it does not support, and all without it, run on the kernels of `conv.cu`, with products by cuBLASLt if
//! available. f16 and bf16 are accumulated in f32; f32 is multiplied in f32, or in TF32 if the program allows it.
//!
//! A convolution of one kind (dtype, sizes, memory order, alignment) always has the same plan: the first of cuDNN's
//! heuristic whose engine is documented by its notes as accurate and deterministic. The workspace is allocated on the
//! call's stream from the device's memory, at most [`WORKSPACE`] bytes; if that fails, the error is out of memory.

mod library;
mod plan;
mod problem;

pub use problem::{Convolution, Key, Kind, Moves};

use crate::driver::Failure;
use crate::kernels::{On, Scratch};
use crate::libraries::{LruCache, Search, error};
use cudarc::cudnn::sys::cudnnHandle_t;
use keyway_sdk::Error;
use keyway_sdk::abi::device::Queue;
use library::Library;
use plan::Plan;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Maximum bytes of workspace.
const WORKSPACE: usize = 256 << 20;

/// The state of cuDNN on a device.
pub struct Dnn {
    state: Mutex<State>,
}

struct State {
    /// Created with the first convolution, and never destroyed: the driver may be unloaded before this library.
    handle: cudnnHandle_t,
    /// `None` if cuDNN has no accurate plan.
    plans: LruCache<Key, Option<Plan>>,
}

// SAFETY: a handle may be used from any thread, one at a time, with its device's context current, as `convolve` upholds.
unsafe impl Send for State {}

impl Dnn {
    /// The initial state of a device.
    pub fn new() -> Dnn {
        Dnn { state: Mutex::new(State { handle: null_mut(), plans: LruCache::default() }) }
    }
}

static FOUND: Search<Library> = Search::new();

/// Whether the library is available for convolutions.
pub fn is_there() -> Result<bool, Error> {
    Ok(FOUND.library()?.is_some())
}

/// Describes the status of the library.
pub fn fact() -> String {
    FOUND.fact()
}

/// Submits a convolution to a stream, or declines it without any effect. `ready` copies its operands to the layout of the key, on
/// the same stream, and returns the addresses of input, kernel and result.
pub fn convolve(on: On, key: &Key, ready: impl FnOnce() -> Result<[u64; 3], Error>) -> Result<bool, Error> {
    let Some(library) = FOUND.library()? else { return Ok(false) };
    let (gpu, stream) = on;
    gpu.context.enter()?;
    let mut state = gpu.dnn.state.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |failure| error::<Library>(gpu, failure);
    let Some((handle, plan)) = state.plan(library, key, stream).map_err(failed)? else { return Ok(false) };
    let workspace = Scratch::new(on, plan.workspace, 1)?;
    let at = ready()?;
    gpu.context.remember("cudnnBackendExecute");
    plan.launch(handle, at, workspace.at()).map_err(failed)?;
    Ok(true)
}

impl State {
    /// The handle, bound to this stream, and the plan of convolutions of this kind; `None` if cuDNN has no plan.
    fn plan(
        &mut self,
        library: &'static Library,
        key: &Key,
        stream: Queue,
    ) -> Result<Option<(cudnnHandle_t, &Plan)>, Failure> {
        if self.handle.is_null() {
            let mut handle = null_mut();
            // SAFETY: the out-pointer is valid, and the device's context is current.
            unsafe { library.cudnnCreate(&mut handle)? };
            self.handle = handle;
        }
        let handle = self.handle;
        // SAFETY: the handle is of this device, and the stream too.
        unsafe { library.cudnnSetStream(handle, stream.cast())? };
        let plan = self.plans.get(key, || Plan::new(library, handle, key, WORKSPACE))?;
        Ok(plan.as_ref().map(|plan| (handle, plan)))
    }
}
