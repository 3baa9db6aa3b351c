//! Builds the stand-in for the driver: `driver.cpp` as `libcuda.so.1`, and next to it the kernels of `backend-cuda`,
//! compiled for the CPU with `shim.h`, and the stand-ins for cuBLASLt, `cublaslt.cpp`, and cuDNN, `cudnn.cpp`.
//!
//! Needs a C++ compiler that supports `_Float16` (g++ 12 or newer, clang++), and no CUDA. Up-to-date files are not rebuilt.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::SystemTime;

/// The folder of the stand-in, below the target folder.
pub const FOLDER: &str = "cuda-stand-in";
/// Options of every compilation. Products and sums are rounded separately, as with `-fmad=false` on a GPU.
const OPTIONS: &[&str] =
    &["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra"];
/// Compiler options for instructions of this machine's processor: `_Float16` is converted by an instruction instead of a
/// function of the compiler's library, which took two fifths of the time of f16 kernels. The results are bit-identical.
fn own_options() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") {
        return &["-mf16c"];
    }
    &[]
}

/// Options that suppress warnings about the kernels' CUDA pragmas.
const OF_KERNELS: &[&str] =
    &["-Wno-unknown-pragmas", "-Wno-unused-function", "-Wno-type-limits", "-Wno-bool-operation"];

/// The reason why there is no stand-in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// No C++ compiler was found: tests are skipped with a message.
    NoCompiler {
        /// The compilers that were tried.
        tried: String,
    },
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The compiler refused a file.
    Refused {
        /// The output file.
        path: PathBuf,
        /// The compiler's message.
        said: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoCompiler { tried } => {
                write!(
                    f,
                    "no C++ compiler was found (tried {tried}); install g++ 12 or newer, or name one in CXX"
                )
            }
            Reason::File { path, source } => write!(f, "{}: {source}", path.display()),
            Reason::Refused { path, said } => write!(f, "{} could not be built:\n{said}", path.display()),
        }
    }
}

impl std::error::Error for Reason {}

fn file(path: &Path) -> impl FnOnce(io::Error) -> Reason {
    let path = path.to_path_buf();
    move |source| Reason::File { path, source }
}

/// Builds the files that are out of date, and returns the path of the driver.
///
/// # Errors
/// [`Reason`]
pub fn build(repository: &Path, target: &Path) -> Result<PathBuf, Reason> {
    let compiler = compiler()?;
    let out = target.join(FOLDER);
    fs::create_dir_all(&out).map_err(file(&out))?;
    // Serialises the tests of several programs. The lock is released with the file.
    let lock = out.join("lock");
    let held = File::create(&lock).map_err(file(&lock))?;
    held.lock().map_err(file(&lock))?;

    let own = repository.join("test-plugins/cuda-driver");
    let kernels = repository.join("backend-cuda/kernels");
    let shim = own.join("shim.h");
    let mut headers = vec![shim.clone(), own.join("src/lib.rs"), own.join("library.h")];
    headers.extend(with_extension(&kernels, "cuh")?);
    let newest = newest(&headers)?;

    let mut jobs: Vec<(PathBuf, PathBuf)> = Vec::new();
    for source in with_extension(&kernels, "cu")?.into_iter().chain([own.join("shim.cpp")]) {
        let object = out.join(source.file_name().unwrap_or_default()).with_extension("o");
        jobs.push((source, object));
    }
    let objects: Vec<PathBuf> = jobs.iter().map(|(_, object)| object.clone()).collect();
    jobs.retain(|(source, object)| is_older(object, newest.max(modified(source))));
    let is_new = !jobs.is_empty();
    compile_all(&compiler, &shim, jobs)?;

    let library = out.join("libkeyway_cuda_kernels.so");
    if is_new || !library.exists() {
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-Wl,-z,defs"]).args(&objects);
        make(command, &library)?;
    }
    let driver = out.join("libcuda.so.1");
    for (source, library) in
        [("driver.cpp", driver.clone()), ("cublaslt.cpp", blas(&driver)), ("cudnn.cpp", dnn(&driver))]
    {
        let source = own.join(source);
        if is_older(&library, newest.max(modified(&source))) {
            let mut command = Command::new(&compiler);
            command
                .args(OPTIONS)
                .args(own_options())
                .args(["-shared", "-Wl,-z,defs"])
                .arg(&source)
                .arg("-ldl");
            make(command, &library)?;
        }
    }
    Ok(driver)
}

/// The path of the stand-in for cuBLASLt of a driver that [`build`] built.
#[must_use]
pub fn blas(driver: &Path) -> PathBuf {
    driver.with_file_name("libcublasLt.so.12")
}

/// The path of the stand-in for cuDNN of a driver that [`build`] built.
#[must_use]
pub fn dnn(driver: &Path) -> PathBuf {
    driver.with_file_name("libcudnn.so.9")
}

/// Builds a program from a source with kernels, for tests of the shim in the folder `own`.
///
/// # Errors
/// [`Reason`]
pub fn build_program(own: &Path, source: &Path, program: &Path) -> Result<(), Reason> {
    let mut command = Command::new(compiler()?);
    command.args(OPTIONS).args(own_options()).args(OF_KERNELS).arg("-include").arg(own.join("shim.h"));
    command.arg(source).arg(own.join("shim.cpp"));
    make(command, program)
}

/// The compiler: the configured one, otherwise the usual ones.
fn compiler() -> Result<String, Reason> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let names = match named {
        Some(name) => vec![name],
        None => vec!["g++".to_string(), "clang++".to_string()],
    };
    let works = |name: &&String| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    names.iter().find(works).cloned().ok_or_else(|| Reason::NoCompiler { tried: names.join(", ") })
}

fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Reason> {
    let entries = fs::read_dir(folder).map_err(file(folder))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    Ok(found)
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

fn newest(paths: &[PathBuf]) -> Result<Option<SystemTime>, Reason> {
    match paths.iter().find(|path| !path.exists()) {
        Some(absent) => Err(file(absent)(io::ErrorKind::NotFound.into())),
        None => Ok(paths.iter().filter_map(|path| modified(path)).max()),
    }
}

fn is_older(made: &Path, than: Option<SystemTime>) -> bool {
    modified(made).is_none_or(|own| than.is_none_or(|than| own < than))
}

/// Compiles sources, several in parallel.
fn compile_all(compiler: &str, shim: &Path, jobs: Vec<(PathBuf, PathBuf)>) -> Result<(), Reason> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let (jobs, failed) = (Mutex::new(jobs), Mutex::new(Ok(())));
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((source, object)) = next() {
                    let mut command = Command::new(compiler);
                    command.args(OPTIONS).args(own_options()).args(["-x", "c++"]);
                    if source.extension().is_some_and(|e| e == "cu") {
                        command.args(OF_KERNELS).arg("-include").arg(shim);
                    }
                    command.arg("-c").arg(&source);
                    if let Err(reason) = make(command, &object) {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(reason);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command that writes a file; the file is replaced atomically, since a program may have the old one open.
fn make(mut command: Command, path: &Path) -> Result<(), Reason> {
    let fresh = path.with_extension(format!("new{}", std::process::id()));
    let output = command.arg("-o").arg(&fresh).output().map_err(file(path))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).chars().take(4000).collect();
        return Err(Reason::Refused { path: path.to_path_buf(), said });
    }
    own_alone(&fresh).and_then(|()| fs::rename(&fresh, path)).map_err(file(path))
}

/// Makes a file writable by its owner only, since the backend refuses a driver that others may write.
#[cfg(unix)]
fn own_alone(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path| fs::set_permissions(path, PermissionsExt::from_mode(0o755));
    set(path)?;
    path.parent().map_or(Ok(()), set)
}

#[cfg(not(unix))]
fn own_alone(_path: &Path) -> io::Result<()> {
    Ok(())
}
