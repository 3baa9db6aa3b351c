//! The CUDA driver API: the only module that calls it.

mod context;
mod failure;
mod find;
mod graph;
mod growing;
mod library;
mod slots;

pub use context::{Argument, Attribute, Context, Entry};
pub use failure::Failure;
pub use find::{file_of, is_named, place, trust, variable};
pub use graph::Executable;
pub use library::reason;
pub use slots::{SLOTS, Slots};

use keyway_sdk::Error;
use library::Library;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// The oldest supported driver version, as returned by `cuDriverGetVersion`: PTX images of NVRTC 12.9 need 12.9.
const OLDEST: i32 = 12090;

/// The initialised driver.
pub struct Driver {
    library: Library,
    /// The file of the driver.
    pub path: PathBuf,
    /// The driver's CUDA version, as returned by `cuDriverGetVersion`.
    pub version: i32,
    /// The number of devices.
    pub count: u32,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

/// Returns the driver; the first call that finds one initialises it. A failure is not cached: the next call searches again.
pub fn driver() -> Result<&'static Driver, Error> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(failed(
            "the driver was started before this process was forked and does not work in the child; use the device in \
             the child alone, or start a new program instead of forking"
                .into(),
        ));
    }
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if DRIVER.get().is_none() {
        let driver = start()?;
        watch_forks();
        let _ = DRIVER.set(driver);
    }
    DRIVER.get().ok_or_else(|| failed("the driver was not stored".into()))
}

fn failed(detail: String) -> Error {
    Error::Failed { detail }
}

fn start() -> Result<Driver, Error> {
    let path = find::path()?;
    let library = Library::open(&path)?;
    let mut version = 0;
    library.version(&mut version).map_err(Failure::plain)?;
    if version < OLDEST {
        return Err(failed(format!(
            "the driver ({}) is for CUDA {} and this library needs one for CUDA {} or newer; update NVIDIA's driver (575 \
             is the first such)",
            path.display(),
            shown(version),
            shown(OLDEST)
        )));
    }
    library.start().map_err(|failure| match failure.code {
        failure::NO_DEVICE => failed(format!(
            "the driver ({}) finds no GPU; `nvidia-smi` lists those that it sees, and CUDA_VISIBLE_DEVICES may hide them",
            path.display()
        )),
        _ => failure.plain(),
    })?;
    let mut count = 0;
    library.device_count(&mut count).map_err(Failure::plain)?;
    let path = library.file().unwrap_or(path);
    Ok(Driver { library, path, version, count: u32::try_from(count).unwrap_or(0) })
}

/// Formats a CUDA version, such as `12.9`.
pub fn shown(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Registers a fork handler: the driver's threads do not exist in a forked child, where its functions would block forever.
fn watch_forks() {
    static WATCHED: Once = Once::new();
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    WATCHED.call_once(|| {
        // SAFETY: the handler is a function of this library, which is never unloaded, and only stores a flag.
        #[cfg(unix)]
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

/// Whether this is a forked child of the process that initialised the driver.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}
