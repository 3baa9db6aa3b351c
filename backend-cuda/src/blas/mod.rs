//! Products by NVIDIA's cuBLASLt, where it is installed: the only place that calls it.
//!
//! What it cannot take, and everything where it is not there, is left to the kernels of `product.cu`.
//!
//! A product of one kind (dtype, sizes, strides, alignment) always has the same algorithm, whose parts of a sum are added up
//! in a step of their own, from a workspace. By NVIDIA's documentation its bits are then the same on every run with the same
//! library on the same kind of GPU. The workspace is of the call's stream, by the device's
//! memory, and of at most [`WORKSPACE`] bytes; where there is none, that is out of memory, and no other algorithm is taken
//! instead.

mod library;
mod plan;
mod problem;

pub use problem::{Matrices, Product};

use crate::driver::Failure;
use crate::kernels::{On, Scratch};
use crate::libraries::{Kept, Search, error};
use cudarc::cublaslt::sys::cublasLtHandle_t;
use keyway_sdk::Error;
use library::Library;
use plan::Plan;
use problem::{Addend, Key, Problem};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// The most bytes of workspace, from compute capability 9.0 on and below: what NVIDIA recommends.
const WORKSPACE: [usize; 2] = [32 << 20, 4 << 20];

/// What a device keeps of cuBLASLt.
pub struct Blas {
    workspace: usize,
    state: Mutex<State>,
}

struct State {
    /// Made with the first product, and never destroyed: the driver may be gone before this library is.
    handle: cublasLtHandle_t,
    /// None where cuBLASLt has no algorithm.
    kept: Kept<Key, Option<Plan>>,
}

// SAFETY: a handle may be used from any thread, with its device's context current, as `multiply` upholds.
unsafe impl Send for State {}

impl Blas {
    /// Of a device of this compute capability's major number.
    pub fn new(major: u32) -> Blas {
        let state = State { handle: null_mut(), kept: Kept::default() };
        Blas { workspace: WORKSPACE[usize::from(major < 9)], state: Mutex::new(state) }
    }
}

static FOUND: Search<Library> = Search::new();

/// Whether products may be given to it.
pub fn is_there() -> Result<bool, Error> {
    Ok(FOUND.library()?.is_some())
}

/// What there is to say of it.
pub fn fact() -> String {
    FOUND.fact()
}

/// Gives a product to a stream, or leaves it: then nothing was done that counts. `fill` copies the product's input to where
/// the result will be, on the same stream.
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
        // Without the epilogue there may be one.
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
    /// The handle, and how products of this kind are made; none where cuBLASLt has no algorithm.
    fn plan(
        &mut self,
        library: &'static Library,
        key: &Key,
        most: usize,
    ) -> Result<Option<(cublasLtHandle_t, &Plan)>, Failure> {
        if self.handle.is_null() {
            let mut handle = null_mut();
            // SAFETY: the place is valid, and the device's context is current.
            unsafe { library.cublasLtCreate(&mut handle)? };
            self.handle = handle;
        }
        let handle = self.handle;
        let plan = self.kept.get(key, || Plan::new(library, handle, key, most))?;
        Ok(plan.as_ref().map(|plan| (handle, plan)))
    }
}
