//! Products by NVIDIA's cuBLASLt, where it is installed: the only place that calls it.
//!
//! It is looked for once, when the first product could use it (`find.rs` says where), and the log says what came of it.
//! What it cannot take, and everything where it is not there, is left to the kernels of `product.cu`.
//!
//! A product of one kind (dtype, sizes, strides, alignment) always has the same algorithm, whose parts of a sum are added up
//! in a step of their own, from a workspace. By NVIDIA's documentation its bits are then the same on every run with the same
//! library on the same kind of GPU; on a GPU this is not measured yet. The workspace is of the call's stream, by the device's
//! memory, and of at most [`WORKSPACE`] bytes; where there is none, that is out of memory, and no other algorithm is taken
//! instead.

mod find;
mod library;
mod plan;
mod problem;

pub use problem::{Matrices, Product};

use crate::driver::{Failure, driver};
use crate::gpu::Gpu;
use crate::kernels::{On, Scratch};
use cudarc::cublaslt::sys::cublasLtHandle_t;
use find::VARIABLE;
use keyway_sdk::Error;
use keyway_sdk::author::{Level, log};
use library::Library;
use plan::Plan;
use problem::{Addend, Key, Problem};
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// The most bytes of workspace, from compute capability 9.0 on and below: what NVIDIA recommends.
const WORKSPACE: [usize; 2] = [32 << 20, 4 << 20];
/// The kinds of products whose algorithms are kept for a device.
const KEPT: usize = 256;

/// What a device keeps of cuBLASLt.
pub struct Blas {
    workspace: usize,
    state: Mutex<State>,
}

struct State {
    /// Made with the first product, and never destroyed: the driver may be gone before this library is.
    handle: cublasLtHandle_t,
    kept: HashMap<Key, Kept>,
    /// Products so far.
    uses: u64,
}

// SAFETY: a handle may be used from any thread, with its device's context current, as `multiply` upholds.
unsafe impl Send for State {}

/// None where cuBLASLt has no algorithm.
struct Kept {
    plan: Option<Plan>,
    used: u64,
}

impl Blas {
    /// Of a device of this compute capability's major number.
    pub fn new(major: u32) -> Blas {
        let state = State { handle: null_mut(), kept: HashMap::new(), uses: 0 };
        Blas { workspace: WORKSPACE[usize::from(major < 9)], state: Mutex::new(state) }
    }
}

/// What the search found, or why nothing: `None` where that was asked for.
type Search = Result<Library, Option<String>>;

/// The search, which is made once.
fn search() -> Result<&'static Search, Error> {
    static FOUND: OnceLock<Search> = OnceLock::new();
    let version = driver()?.version;
    Ok(FOUND.get_or_init(|| find::open(&find::choose(version), Library::open)))
}

/// cuBLASLt, if it is there; the log says once what was found.
fn library() -> Result<Option<&'static Library>, Error> {
    static SAID: Once = Once::new();
    let found = search()?;
    SAID.call_once(|| match found {
        Ok(opened) => log(Level::Info, &format!("products of matrices use cuBLASLt {}", described(opened))),
        Err(None) => {}
        Err(Some(reason)) => log(
            Level::Warn,
            &format!(
                "no cuBLASLt for products of matrices, which own kernels make, right but slower: {reason}. {ADVICE}"
            ),
        ),
    });
    Ok(found.as_ref().ok())
}

/// Whether products may be given to it.
pub fn is_there() -> Result<bool, Error> {
    Ok(library()?.is_some())
}

/// How to have one.
const ADVICE: &str = "NVIDIA's toolkit has it, and so has PyPI's nvidia-cublas; KEYWAY_CUDA_BLAS names another file by its \
                      absolute path, or is `off` where none is wanted";

/// Its version and its file.
fn described(library: &Library) -> String {
    match library.file() {
        Some(file) => format!("{}, {}", library.version(), file.display()),
        None => library.version(),
    }
}

/// What there is to say of it: what was found, or why nothing, what works without it, and where it is looked for.
pub fn fact() -> String {
    let without =
        "products of matrices are made by own kernels, right but slower; all else needs the driver alone";
    match search() {
        Err(_) => format!("not looked for without a driver; with one, {}", find::places()),
        Ok(Ok(library)) => format!("{}; products of matrices use it", described(library)),
        Ok(Err(None)) => format!("off, by {VARIABLE}; {without}"),
        Ok(Err(Some(reason))) => format!("none: {reason}; {without}. {ADVICE}"),
    }
}

/// Gives a product to a stream, or leaves it: then nothing was done that counts. `fill` copies the product's input to where
/// the result will be, on the same stream.
pub fn multiply(
    on: On,
    product: &Product<'_>,
    fill: impl FnOnce() -> Result<(), Error>,
) -> Result<bool, Error> {
    let Some(mut problem) = Problem::new(product) else { return Ok(false) };
    let Some(library) = library()? else { return Ok(false) };
    let (gpu, stream) = on;
    gpu.context.enter()?;
    let mut state = gpu.blas.state.lock().unwrap_or_else(PoisonError::into_inner);
    let state = &mut *state;
    let most = gpu.blas.workspace;
    if !state.prepare(library, &problem.key, most).map_err(|failure| error(gpu, failure))? {
        // Without the epilogue there may be one.
        match problem.copied(product.beta) {
            Some(other) => problem = other,
            None => return Ok(false),
        }
        if !state.prepare(library, &problem.key, most).map_err(|failure| error(gpu, failure))? {
            return Ok(false);
        }
    }
    let Some(plan) = state.kept.get(&problem.key).and_then(|kept| kept.plan.as_ref()) else {
        return Ok(false);
    };
    let workspace = Scratch::new(on, plan.workspace, 1)?;
    if problem.key.addend == Addend::Copied {
        fill()?;
    }
    gpu.context.remember("cublasLtMatmul");
    plan.launch(state.handle, &problem, workspace.at(), stream).map_err(|failure| error(gpu, failure))?;
    Ok(true)
}

impl State {
    /// Keeps a plan for products of this kind; whether there is one.
    fn prepare(&mut self, library: &'static Library, key: &Key, most: usize) -> Result<bool, Failure> {
        self.uses += 1;
        let used = self.uses;
        if let Some(kept) = self.kept.get_mut(key) {
            kept.used = used;
            return Ok(kept.plan.is_some());
        }
        if self.handle.is_null() {
            let mut handle = null_mut();
            // SAFETY: the place is valid, and the device's context is current.
            unsafe { library.cublasLtCreate(&mut handle)? };
            self.handle = handle;
        }
        let plan = Plan::new(library, self.handle, key, most)?;
        if self.kept.len() >= KEPT {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key);
            oldest.and_then(|key| self.kept.remove(&key));
        }
        let is_there = plan.is_some();
        self.kept.insert(*key, Kept { plan, used });
        Ok(is_there)
    }
}

/// The error of a call that failed.
#[cold]
fn error(gpu: &Gpu, failure: Failure) -> Error {
    // What an earlier kernel broke is the driver's to tell.
    match gpu.context.free_memory() {
        Err(lost @ Error::DeviceLost { .. }) => lost,
        _ => Error::Failed {
            detail: format!(
                "{failure}; {VARIABLE}=off leaves products of matrices to kernels without cuBLASLt"
            ),
        },
    }
}
