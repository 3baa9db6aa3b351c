//! Matrix products by NVIDIA's cuBLASLt, if it is installed: the only module that calls it.
//!
//! Products that it does not support, and all products without it, run on the kernels of `product.cu`.
//!
//! A product of one kind (dtype, sizes, strides, alignment) always has the same algorithm, with split-k reductions in a separate
//! step, from a workspace. By NVIDIA's documentation its results are then bitwise identical on every run with the same library on
//! the same kind of GPU. The workspace is allocated on the call's stream from the device's memory, at most [`WORKSPACE`] bytes;
//! if that fails, the error is out of memory, and no other algorithm is used instead.

mod library;
mod plan;
mod problem;

pub use problem::{Matrices, Product};

use crate::driver::Failure;
use crate::kernels::{On, Scratch};
use crate::libraries::{LruCache, Search, error};
use cudarc::cublaslt::sys::cublasLtHandle_t;
use keyway_sdk::Error;
use library::Library;
use plan::Plan;
use problem::{Addend, Key, Problem};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Maximum bytes of workspace, from compute capability 9.0 and below it: NVIDIA's recommendation.
const WORKSPACE: [usize; 2] = [32 << 20, 4 << 20];

/// The state of cuBLASLt on a device.
pub struct Blas {
    workspace: usize,
    state: Mutex<State>,
}

struct State {
    /// Created with the first product, and never destroyed: the driver may be unloaded before this library.
    handle: cublasLtHandle_t,
    /// `None` if cuBLASLt has no algorithm.
    plans: LruCache<Key, Option<Plan>>,
}

// SAFETY: a handle may be used from any thread, with its device's context current, as `multiply` upholds.
unsafe impl Send for State {}

impl Blas {
    /// The state for a device of this compute capability's major number.
    pub fn new(major: u32) -> Blas {
        let state = State { handle: null_mut(), plans: LruCache::default() };
        Blas { workspace: WORKSPACE[usize::from(major < 9)], state: Mutex::new(state) }
    }
}

static FOUND: Search<Library> = Search::new();

/// Whether the library is available for products.
pub fn is_there() -> Result<bool, Error> {
    Ok(FOUND.library()?.is_some())
}

/// Describes the status of the library.
pub fn fact() -> String {
    FOUND.fact()
}

/// Submits a product to a stream, or declines it without any effect. `fill` copies the product's input to the result, on
/// the same stream.
pub fn multiply(
    on: On,
    product: &Product<'_>,
    fill: impl FnOnce() -> Result<(), Error>,
) -> Result<bool, Error> {
    let Some(mut problem) = Problem::new(product) else { return Ok(false) };
    let Some(library) = FOUND.library()? else { return Ok(false) };
    let (gpu, stream) = on;
    gpu.context.enter()?;
    let mut state = gpu.blas.state.lock().unwrap_or_else(PoisonError::into_inner);
    let state = &mut *state;
    let most = gpu.blas.workspace;
    let failed = |failure| error::<Library>(gpu, failure);
    if state.plan(library, &problem.key, most).map_err(failed)?.is_none() {
        // Without the epilogue there may be an algorithm.
        match problem.copied(product.beta) {
            Some(other) => problem = other,
            None => return Ok(false),
        }
    }
    let Some((handle, plan)) = state.plan(library, &problem.key, most).map_err(failed)? else {
        return Ok(false);
    };
    let workspace = Scratch::new(on, plan.workspace, 1)?;
    if problem.key.addend == Addend::Copied {
        fill()?;
    }
    gpu.context.remember("cublasLtMatmul");
    plan.launch(handle, &problem, workspace.at(), stream).map_err(failed)?;
    Ok(true)
}

impl State {
    /// The handle, and the plan of products of this kind; `None` if cuBLASLt has no algorithm.
    fn plan(
        &mut self,
        library: &'static Library,
        key: &Key,
        most: usize,
    ) -> Result<Option<(cublasLtHandle_t, &Plan)>, Failure> {
        if self.handle.is_null() {
            let mut handle = null_mut();
            // SAFETY: the out-pointer is valid, and the device's context is current.
            unsafe { library.cublasLtCreate(&mut handle)? };
            self.handle = handle;
        }
        let handle = self.handle;
        let plan = self.plans.get(key, || Plan::new(library, handle, key, most))?;
        Ok(plan.as_ref().map(|plan| (handle, plan)))
    }
}
