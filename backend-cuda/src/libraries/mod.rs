//! NVIDIA's optional libraries: search, loading, and status.
//!
//! Each library is searched for once, when a call could first use it (`find.rs` has the search path), and the result is
//! logged. Functions are resolved here, like the driver's: `cudarc` provides the types.

mod find;
mod lru;
mod table;

pub use find::Wanted;
pub use lru::LruCache;
pub(crate) use table::table;

use crate::driver::{Failure, driver};
use crate::gpu::Gpu;
use find::Opened;
use keyway_sdk::Error;
use keyway_sdk::author::{Level, log};
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

/// A library's functions, as defined by [`table!`](table).
pub trait Table: Sized + 'static {
    /// The library's names and versions.
    const WANTED: Wanted;
    /// The purpose of the library, in the plural: `products of matrices`.
    const MAKES: &'static str;
    /// The packages that contain it.
    const HAVE: &'static str;

    /// Opens a library by its path, or by a name for the system's loader, and resolves every function. `driver` is the
    /// driver's version, as an integer.
    fn open(path: &Path, driver: i32) -> Result<Self, String>;

    /// The version, formatted.
    fn version(&self) -> String;

    /// The file that the loader opened.
    fn file(&self) -> Option<PathBuf>;
}

/// A search that runs once.
pub struct Search<L> {
    found: OnceLock<Opened<L>>,
    said: Once,
}

impl<L: Table> Search<L> {
    /// A search that has not run.
    pub const fn new() -> Search<L> {
        Search { found: OnceLock::new(), said: Once::new() }
    }

    fn made(&'static self) -> Result<&'static Opened<L>, Error> {
        let version = driver()?.version;
        let open =
            || find::open(&L::WANTED, &find::choose(&L::WANTED, version), |path| L::open(path, version));
        Ok(self.found.get_or_init(open))
    }

    /// The library, if it is installed; the result of the search is logged once.
    pub fn library(&'static self) -> Result<Option<&'static L>, Error> {
        let found = self.made()?;
        let (name, makes) = (L::WANTED.name, L::MAKES);
        self.said.call_once(|| match found {
            Ok(opened) => log(Level::Info, &format!("{makes} use {name} {}", described(opened))),
            Err(None) => {}
            Err(Some(reason)) => log(
                Level::Warn,
                &format!(
                    "no {name} for {makes}, which own kernels make, right but slower: {reason}. {}",
                    advice::<L>()
                ),
            ),
        });
        Ok(found.as_ref().ok())
    }

    /// Describes the status: the library, or the reason why it is missing, the replacement, and the search path.
    pub fn fact(&'static self) -> String {
        let makes = L::MAKES;
        let without = format!("{makes} are computed without it, right but slower");
        match self.made() {
            Err(_) => format!("not looked for without a driver; with one, {}", find::places(&L::WANTED)),
            Ok(Ok(library)) => format!("{}; {makes} use it", described(library)),
            Ok(Err(None)) => format!("off, by {}; {without}", L::WANTED.variable),
            Ok(Err(Some(reason))) => format!("none: {reason}; {without}. {}", advice::<L>()),
        }
    }
}

/// Advice on how to install the library.
fn advice<L: Table>() -> String {
    let (have, variable) = (L::HAVE, L::WANTED.variable);
    format!("{have}; {variable} names another file by its absolute path, or is `off` where none is wanted")
}

/// The version and the file.
fn described<L: Table>(library: &L) -> String {
    match library.file() {
        Some(file) => format!("{}, {}", library.version(), file.display()),
        None => library.version(),
    }
}

/// Formats a version `MAJOR * 10000 + MINOR * 100 + PATCH`.
pub fn shown(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// The error of a failed call of a library.
#[cold]
pub fn error<L: Table>(gpu: &Gpu, failure: Failure) -> Error {
    // A failure of an earlier kernel is reported by the driver.
    match gpu.context.free_memory() {
        Err(lost @ Error::DeviceLost { .. }) => lost,
        _ => Error::Failed {
            detail: format!(
                "{failure}; {}=off leaves {} to kernels without {}",
                L::WANTED.variable,
                L::MAKES,
                L::WANTED.name
            ),
        },
    }
}
