//! cuDNN's functions, and the search for the library.

use crate::driver::{self, Failure, file_of};
use crate::libraries::{Table, Wanted, shown, table};
use cudarc::cudnn::sys::{cudnnBackendDescriptor_t, cudnnHandle_t};
use cudarc::driver::sys::CUstream;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::path::{Path, PathBuf};

/// The oldest supported version, as `cudnnGetVersion` counts.
const OLDEST: usize = 90_000;

table! {
    version: cudnnGetVersion;
    raw {
        cudnnGetCudartVersion: unsafe extern "C" fn() -> usize;
        cudnnGetErrorString: unsafe extern "C" fn(c_uint) -> *const c_char;
        cudnnGetLastErrorString: unsafe extern "C" fn(*mut c_char, usize);
    }
    answers {
        cudnnCreate(handle: *mut cudnnHandle_t);
        cudnnSetStream(handle: cudnnHandle_t, stream: CUstream);
        cudnnBackendCreateDescriptor(kind: c_uint, made: *mut cudnnBackendDescriptor_t);
        cudnnBackendDestroyDescriptor(of: cudnnBackendDescriptor_t);
        cudnnBackendSetAttribute(
            of: cudnnBackendDescriptor_t, which: c_uint, kind: c_uint, count: i64, values: *const c_void
        );
        cudnnBackendGetAttribute(
            of: cudnnBackendDescriptor_t, which: c_uint, kind: c_uint, wanted: i64, count: *mut i64, values: *mut c_void
        );
        cudnnBackendFinalize(of: cudnnBackendDescriptor_t);
        cudnnBackendExecute(handle: cudnnHandle_t, plan: cudnnBackendDescriptor_t, pack: cudnnBackendDescriptor_t);
    }
}

impl Table for Library {
    const WANTED: Wanted = Wanted {
        name: "cuDNN",
        variable: "KEYWAY_CUDA_DNN",
        versions: &[("libcudnn.so.9", 12000)],
        packages: &["cudnn"],
    };
    const MAKES: &'static str = "convolutions";
    const HAVE: &'static str = "NVIDIA has it as a package for each system, and so has PyPI as nvidia-cudnn-cu13 and \
                                nvidia-cudnn-cu12";

    fn open(path: &Path, driver: i32) -> Result<Library, String> {
        let library = Library::resolve(path, |version| match version {
            OLDEST.. => Ok(()),
            _ => Err(format!("is of version {}, and 9.0 or newer is needed", shown(version))),
        })?;
        // Files for CUDA 12 and 13 have the same name.
        // SAFETY: the function takes no arguments, and may be called before all others.
        let built_for = unsafe { (library.cudnnGetCudartVersion)() } as i32;
        match built_for / 1000 > driver / 1000 {
            false => Ok(library),
            true => Err(format!(
                "is built for CUDA {}, and the driver serves CUDA {}",
                driver::shown(built_for),
                driver::shown(driver)
            )),
        }
    }

    fn version(&self) -> String {
        shown(self.version)
    }

    fn file(&self) -> Option<PathBuf> {
        file_of(self.cudnnCreate as *const c_void)
    }
}

impl Library {
    #[cold]
    fn failure(&self, call: &'static str, code: u32) -> Failure {
        // SAFETY: every code is valid here.
        let name = unsafe { (self.cudnnGetErrorString)(code) };
        let name = match name.is_null() {
            true => "an error without a name".into(),
            // SAFETY: the library returns a string with its own lifetime.
            false => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
        };
        let mut text = [0u8; 512];
        // SAFETY: the buffer has this size, and its last byte remains 0.
        unsafe { (self.cudnnGetLastErrorString)(text.as_mut_ptr().cast(), text.len() - 1) };
        let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().trim().to_string());
        let text = text.ok().filter(|text| !text.is_empty());
        Failure { call, code, name, text: text.unwrap_or_else(|| "the library does not describe it".into()) }
    }
}
