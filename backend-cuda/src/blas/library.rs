//! cuBLASLt's functions, and the search for the library.

use crate::driver::{Failure, file_of};
use crate::libraries::{Table, Wanted, shown, table};
use cudarc::cublaslt::sys::{
    cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreference_t, cublasLtMatrixLayout_t,
};
use cudarc::driver::sys::CUstream;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

/// The oldest supported version, as `cublasLtGetVersion` counts.
const OLDEST: usize = 120_000;

/// A result of the heuristic: `cublasLtMatmulHeuristicResult_t`, with the state as an integer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Found {
    /// The algorithm.
    pub algorithm: cublasLtMatmulAlgo_t,
    /// Bytes of workspace that it needs.
    pub workspace: usize,
    /// Whether the other fields are valid: 0 if they are.
    pub state: c_uint,
    waves: f32,
    reserved: [c_int; 4],
}
const _: () = assert!(size_of::<Found>() == size_of::<cublasLtMatmulHeuristicResult_t>());

table! {
    version: cublasLtGetVersion;
    raw {
        cublasLtGetStatusName: unsafe extern "C" fn(c_uint) -> *const c_char;
        cublasLtGetStatusString: unsafe extern "C" fn(c_uint) -> *const c_char;
    }
    answers {
        cublasLtCreate(handle: *mut cublasLtHandle_t);
        cublasLtMatmulDescCreate(made: *mut cublasLtMatmulDesc_t, compute: c_uint, scale: c_uint);
        cublasLtMatmulDescSetAttribute(of: cublasLtMatmulDesc_t, which: c_uint, value: *const c_void, bytes: usize);
        cublasLtMatmulDescDestroy(of: cublasLtMatmulDesc_t);
        cublasLtMatrixLayoutCreate(made: *mut cublasLtMatrixLayout_t, dtype: c_uint, rows: u64, columns: u64, leading: i64);
        cublasLtMatrixLayoutSetAttribute(of: cublasLtMatrixLayout_t, which: c_uint, value: *const c_void, bytes: usize);
        cublasLtMatrixLayoutDestroy(of: cublasLtMatrixLayout_t);
        cublasLtMatmulPreferenceCreate(made: *mut cublasLtMatmulPreference_t);
        cublasLtMatmulPreferenceSetAttribute(
            of: cublasLtMatmulPreference_t, which: c_uint, value: *const c_void, bytes: usize
        );
        cublasLtMatmulPreferenceDestroy(of: cublasLtMatmulPreference_t);
        cublasLtMatmulAlgoGetHeuristic(
            handle: cublasLtHandle_t, of: cublasLtMatmulDesc_t, a: cublasLtMatrixLayout_t, b: cublasLtMatrixLayout_t,
            c: cublasLtMatrixLayout_t, d: cublasLtMatrixLayout_t, preference: cublasLtMatmulPreference_t, wanted: c_int,
            found: *mut Found, count: *mut c_int
        );
        cublasLtMatmul(
            handle: cublasLtHandle_t, of: cublasLtMatmulDesc_t, alpha: *const c_void, a: *const c_void,
            a_layout: cublasLtMatrixLayout_t, b: *const c_void, b_layout: cublasLtMatrixLayout_t, beta: *const c_void,
            c: *const c_void, c_layout: cublasLtMatrixLayout_t, d: *mut c_void, d_layout: cublasLtMatrixLayout_t,
            algorithm: *const cublasLtMatmulAlgo_t, workspace: *mut c_void, workspace_bytes: usize, stream: CUstream
        );
    }
}

impl Table for Library {
    const WANTED: Wanted = Wanted {
        name: "cuBLASLt",
        variable: "KEYWAY_CUDA_BLAS",
        versions: &[("libcublasLt.so.13", 13000), ("libcublasLt.so.12", 12000)],
        // The packages of CUDA 13 share a folder, those of CUDA 12 have one each.
        packages: &["cu13", "cublas"],
    };
    const MAKES: &'static str = "products of matrices";
    const HAVE: &'static str = "NVIDIA's toolkit has it, and so has PyPI's nvidia-cublas";

    fn open(path: &Path, _driver: i32) -> Result<Library, String> {
        Library::resolve(path, |version| match version {
            OLDEST.. => Ok(()),
            _ => Err(format!("is of version {}, and 12.0 or newer is needed", shown(version))),
        })
    }

    fn version(&self) -> String {
        shown(self.version)
    }

    fn file(&self) -> Option<PathBuf> {
        file_of(self.cublasLtCreate as *const c_void)
    }
}

impl Library {
    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Failure {
        let text = |describe: unsafe extern "C" fn(c_uint) -> *const c_char| {
            // SAFETY: every code is valid here.
            let text = unsafe { describe(code) };
            // SAFETY: the library returns a string with its own lifetime.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Failure {
            call,
            code,
            name: text(self.cublasLtGetStatusName).unwrap_or_else(|| "an error without a name".into()),
            text: text(self.cublasLtGetStatusString)
                .unwrap_or_else(|| "the library does not describe it".into()),
        }
    }
}
