//! cuBLASLt's functions, resolved once, with their names kept for errors.

use crate::driver::{Failure, file_of, reason};
use cudarc::cublaslt::sys::{
    cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreference_t, cublasLtMatrixLayout_t,
};
use cudarc::driver::sys::CUstream;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

/// The oldest version that serves, as `cublasLtGetVersion` counts.
const OLDEST: usize = 120_000;

/// What a heuristic finds: `cublasLtMatmulHeuristicResult_t`, with the state as a number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Found {
    /// The algorithm.
    pub algorithm: cublasLtMatmulAlgo_t,
    /// Bytes of workspace that it needs.
    pub workspace: usize,
    /// Whether the rest is valid: 0.
    pub state: c_uint,
    waves: f32,
    reserved: [c_int; 4],
}
const _: () = assert!(size_of::<Found>() == size_of::<cublasLtMatmulHeuristicResult_t>());

/// A table of functions. Codes and attributes are taken as numbers: a newer library knows more of them than the types do.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {
        #[allow(non_snake_case)]
        pub struct Library {
            $($name: unsafe extern "C" fn($($type),*) -> c_uint,)+
            describe_name: unsafe extern "C" fn(c_uint) -> *const c_char,
            describe_text: unsafe extern "C" fn(c_uint) -> *const c_char,
            version: usize,
            _file: libloading::Library,
        }

        impl Library {
            /// Opens a library by its path, or by a name that the system's loader knows, and finds every function.
            pub fn open(path: &Path) -> Result<Library, String> {
                // SAFETY: the library is one that the system's loader finds, or a file that nobody else may write; its
                // initialisers are its own.
                let file = unsafe { libloading::Library::new(path) }
                    .map_err(|error| format!("cannot be loaded ({})", reason(&error)))?;
                macro_rules! find {
                    ($symbol:expr) => {
                        // SAFETY: the types are those of the library's interface, as `cudarc` declares it.
                        *unsafe { file.get($symbol) }.map_err(|_| format!("has no {}", $symbol))?
                    };
                }
                let version: unsafe extern "C" fn() -> usize = find!("cublasLtGetVersion");
                // SAFETY: the function takes nothing, and may be called before all others.
                let version = unsafe { version() };
                if version < OLDEST {
                    return Err(format!("is of version {}, and 12.0 or newer is needed", shown(version)));
                }
                Ok(Library {
                    $($name: find!(stringify!($name)),)+
                    describe_name: find!("cublasLtGetStatusName"),
                    describe_text: find!("cublasLtGetStatusString"),
                    version,
                    _file: file,
                })
            }

            $(
                /// # Safety
                /// As the library's documentation says of the function of this name; the caller upholds it.
                #[allow(non_snake_case, clippy::too_many_arguments, reason = "the library's functions as they are")]
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Failure> {
                    // SAFETY: the caller's.
                    let code = unsafe { (self.$name)($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(self.failure(stringify!($name), code)) }
                }
            )+
        }
    };
}

functions! {
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

/// A version as people write it.
fn shown(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

impl Library {
    /// The file that the loader took.
    pub fn file(&self) -> Option<PathBuf> {
        file_of(self.cublasLtCreate as *const c_void)
    }

    /// Its version.
    pub fn version(&self) -> String {
        shown(self.version)
    }

    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Failure {
        let text = |describe: unsafe extern "C" fn(c_uint) -> *const c_char| {
            // SAFETY: any number may be asked for.
            let text = unsafe { describe(code) };
            // SAFETY: what the library gives is a string that lives as long as it does.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Failure {
            call,
            code,
            name: text(self.describe_name).unwrap_or_else(|| "an error without a name".into()),
            text: text(self.describe_text).unwrap_or_else(|| "the library does not describe it".into()),
        }
    }
}

// SAFETY: the functions may be called from any thread, each handle and descriptor by one at a time.
unsafe impl Send for Library {}
// SAFETY: as for Send.
unsafe impl Sync for Library {}
