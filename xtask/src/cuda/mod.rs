//! `cargo xtask cuda`: the images of the kernels in `backend-cuda/kernels`, and the stand-in that runs them without a GPU.
//!
//! Images are PTX for the lowest supported chip, compiled by NVRTC of a pinned version, which is installed from PyPI into a
//! folder below the target folder. They are committed, so that a build of the backend needs no compiler for them; `check`
//! recompiles and compares them.

mod compiler;

use crate::dist;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use compiler::Compiler;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use keyway_test_cuda_driver::Reason;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The lowest chip of the images, as in the backend's `build.rs`, and the first words of a kernel file that names other chips.
/// A name that ends in `a` is of that chip alone.
const TARGET: &str = "compute_75";
const NAMES_TARGETS: &str = "// targets: ";
/// Limit on the bytes of all images.
const LIMIT: u64 = 5_000_000;
const KERNELS: &str = "backend-cuda/kernels";
const IMAGES: &str = "backend-cuda/images";

/// The subtasks of `cargo xtask cuda`.
#[derive(clap::Subcommand, Debug)]
pub enum Task {
    /// Compile the kernel files to images, and write those that differ.
    Images {
        /// Only these families; all, if none is named.
        families: Vec<String>,
    },
    /// Compile every kernel file and compare with the images that are there; skipped, with the reason, without Python.
    Check,
    /// Build the stand-ins for the driver, cuBLASLt and cuDNN by a C++ compiler, and say how to use them.
    StandIn,
    /// Judge the staged backend on the stand-in: all ops with a guard page behind each tensor, then products by the stand-in for
    /// cuBLASLt, and the quick cases in cached blocks, with cuDNN's; skipped, with the reason, without a C++ compiler.
    Judge {
        /// Only this share of the cases of the first two runs, such as 0.2, drawn by a random seed.
        #[arg(long, value_name = "SHARE")]
        sample: Option<String>,
    },
}

/// Runs the subcommand.
pub fn run(workspace: &Workspace, task: &Task) -> Result<()> {
    match task {
        Task::Images { families } => images(workspace, families),
        Task::Check => check(workspace),
        Task::StandIn => stand_in(workspace),
        Task::Judge { sample } => judge(workspace, sample.as_deref()),
    }
}

/// The expected content of an image, and its path.
struct Image {
    family: String,
    path: PathBuf,
    ptx: Vec<u8>,
}

impl Image {
    /// Whether the file holds this PTX. The compression does not matter.
    fn is_there(&self) -> bool {
        let mut there = Vec::new();
        std::fs::read(&self.path)
            .is_ok_and(|file| ZlibDecoder::new(&*file).read_to_end(&mut there).is_ok() && there == self.ptx)
    }

    fn write(&self) -> Result<()> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let packed = encoder.write_all(&self.ptx).and_then(|()| encoder.finish());
        let packed = packed.map_err(Failure::file("compress", &self.path))?;
        std::fs::write(&self.path, packed).map_err(Failure::file("write", &self.path))
    }
}

fn images(workspace: &Workspace, only: &[String]) -> Result<()> {
    let compiler = Compiler::find(workspace)?;
    let all = compile(workspace, &compiler, only)?;
    let mut total = 0;
    for image in &all {
        let new = !image.is_there();
        if new {
            image.write()?;
        }
        let bytes = image.path.metadata().map_err(Failure::file("measure", &image.path))?.len();
        total += bytes;
        let state = if new { "written" } else { "up to date" };
        let name = image.path.file_name().unwrap_or_default().display();
        println!("{:>9} B of {:>9}  {name}: {state}", bytes, image.ptx.len());
    }
    if !only.is_empty() {
        return Ok(());
    }
    for path in stale(workspace, &all)? {
        std::fs::remove_file(&path).map_err(Failure::file("remove", &path))?;
        println!("removed {}", path.display());
    }
    println!("{total:>9} B in {} images", all.len());
    if total > LIMIT {
        Err(Failure::Images { what: format!("they take {total} bytes, the limit is {LIMIT}") })
    } else {
        Ok(())
    }
}

fn check(workspace: &Workspace) -> Result<()> {
    let compiler = match Compiler::find(workspace) {
        Ok(compiler) => compiler,
        Err(failure) => {
            return workspace::skipped("cuda check", &failure.to_string());
        }
    };
    let all = compile(workspace, &compiler, &[])?;
    let mut wrong: Vec<String> =
        all.iter().filter(|image| !image.is_there()).map(|image| image.family.clone()).collect();
    wrong.extend(stale(workspace, &all)?.iter().map(|path| path.display().to_string()));
    if wrong.is_empty() {
        println!("cuda check: {} images are those of their sources", all.len());
        return Ok(());
    }
    Err(Failure::Images { what: format!("not those of their sources: {}", wrong.join(", ")) })
}

/// Compiles every family, or the given ones, several in parallel.
fn compile(workspace: &Workspace, compiler: &Compiler, only: &[String]) -> Result<Vec<Image>> {
    let folder = workspace.path(KERNELS);
    let mut families = stems(&folder, "cu")?;
    if let Some(unknown) = only.iter().find(|name| !families.contains(name)) {
        return Err(Failure::Images { what: format!("there is no {KERNELS}/{unknown}.cu") });
    }
    families.retain(|family| only.is_empty() || only.contains(family));
    families.sort();
    let mut jobs = Vec::new();
    for family in families {
        let source = folder.join(format!("{family}.cu"));
        let text = std::fs::read_to_string(&source).map_err(Failure::file("read", &source))?;
        let named = text.lines().next().and_then(|line| line.strip_prefix(NAMES_TARGETS)).unwrap_or(TARGET);
        jobs.extend(named.split_whitespace().map(|target| (family.clone(), target.to_string())));
    }
    let jobs = Mutex::new(jobs);
    let done = Mutex::new(Vec::new());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let keep = |made| done.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((family, target)) = next() {
                    keep(compiler.compile(&folder, &family, &target).map(|ptx| Image {
                        path: workspace.path(IMAGES).join(format!("{family}.{target}.ptx.z")),
                        family,
                        ptx,
                    }));
                }
            });
        }
    });
    let made = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut all = made.into_iter().collect::<Result<Vec<Image>>>()?;
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

/// The stems of the files with an extension.
fn stems(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(Failure::file("list", folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let with = paths.filter(|path| path.extension().is_some_and(|e| e == extension));
    Ok(with.filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect())
}

/// Images without a source.
fn stale(workspace: &Workspace, all: &[Image]) -> Result<Vec<PathBuf>> {
    let folder = workspace.path(IMAGES);
    let names = stems(&folder, "z")?;
    let paths = names.into_iter().map(|name| folder.join(format!("{name}.z")));
    Ok(paths.filter(|path| all.iter().all(|image| image.path != *path)).collect())
}

/// The time limit of a case in seconds: the stand-in runs the threads of a kernel sequentially.
const CASE_SECONDS: &str = "120";
/// Variables with the path of another driver, cuBLASLt and cuDNN for the backend, or `off`.
const DRIVER: &str = "KEYWAY_CUDA_DRIVER";
const BLAS: &str = "KEYWAY_CUDA_BLAS";
const DNN: &str = "KEYWAY_CUDA_DNN";
/// The allocator setting that caches and splits no block, so that a guard page of the stand-in follows each tensor.
const GUARDED: (&str, &str) = ("KEYWAY_CUDA_ALLOCATOR", "pool");
/// The ops that cuBLASLt serves.
const PRODUCTS: &[&str] =
    &["mm", "addmm", "bmm", "baddbmm", "mv", "conv", "conv_input_grad", "conv_weight_grad"];

/// Families of calls that take minutes where threads are fibres of one processor, and the ops that represent all others there:
/// one of each kind of kernel.
const LONG: [&str; 5] = ["scaled", "soak", "state", "settings", "queues"];
const OF_EACH_KIND: [&str; 8] = ["add", "sum", "mm", "conv", "softmax", "gather", "sort", "layer_norm"];
/// Families whose quick cases are enough there.
const QUICK: [&str; 2] = ["sizes", "threads"];
/// Families of calls whose results could depend on the allocator: on what a block held before, on its size or its stream.
const OF_MEMORY: [&str; 9] =
    ["aliasing", "determinism", "device", "gradients", "large", "leaks", "out", "sizes", "threads"];
/// The ops that cuDNN serves.
const CONVOLUTIONS: [&str; 4] = ["conv", "conv_act", "conv_input_grad", "conv_weight_grad"];

fn build(workspace: &Workspace) -> std::result::Result<PathBuf, Reason> {
    keyway_test_cuda_driver::build(&workspace.root, &workspace.target())
}

fn stand_in(workspace: &Workspace) -> Result<()> {
    let driver = build(workspace).map_err(|reason| Failure::StandIn { reason: reason.to_string() })?;
    let (blas, dnn) = (keyway_test_cuda_driver::blas(&driver), keyway_test_cuda_driver::dnn(&driver));
    let (driver, blas, dnn) = (driver.display(), blas.display(), dnn.display());
    println!("the stand-in is built; to use it: {DRIVER}={driver} {BLAS}={blas} {DNN}={dnn}");
    Ok(())
}

/// `keyway conformance` of the program and the backend in `dist/`: all ops without cuBLASLt and cuDNN, with guard pages around
/// each tensor; then products by cuBLASLt, including convolutions; then, in the default configuration (both libraries, blocks
/// that the backend caches and splits), the quick cases of convolutions, and those of all ops in the families [`OF_MEMORY`]. The
/// [`LONG`] families are judged by the quick cases of some ops. With a sample, the first two runs judge this share of their cases, and
/// a run between them calls each kernel.
fn judge(workspace: &Workspace, sample: Option<&str>) -> Result<()> {
    let driver = match build(workspace) {
        Ok(driver) => driver,
        Err(reason @ Reason::NoCompiler { .. }) => {
            return workspace::skipped("cuda judge", &reason.to_string());
        }
        Err(reason) => return Err(Failure::StandIn { reason: reason.to_string() }),
    };
    let library = keyway_test_cuda_driver::blas(&driver);
    let judge = |blas: &Path| {
        let mut command = workspace.command(dist::program(workspace));
        command.args(["conformance", "keyway-cuda", "--timeout", CASE_SECONDS]);
        // Threads are fibres here, and a million of them take minutes.
        command.args(["--drawing", "0"]);
        command.env(DRIVER, &driver).env(BLAS, blas).env(DNN, "off");
        command
    };
    let judged = |command: &mut Command| {
        let begin = Instant::now();
        workspace::run(
            command,
            "the cases that are not as expected stand above; `cargo xtask dist` stages the program",
        )?;
        println!("cuda judge: {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    };
    let without_long = || LONG.iter().flat_map(|family| ["--without-family", family]);
    let sampled = || sample.into_iter().flat_map(|share| ["--sample", share]);
    println!("All ops, a guard page behind each tensor:");
    let without_quick = QUICK.iter().flat_map(|family| ["--without-family", family]);
    let mut guarded = judge(Path::new("off"));
    guarded.env(GUARDED.0, GUARDED.1).args(without_long()).args(without_quick);
    judged(guarded.args(sampled()))?;
    if sample.is_some() {
        println!("\nEach kernel once, since a sample leaves some out:");
        let mut each = judge(Path::new("off"));
        judged(each.env(GUARDED.0, GUARDED.1).args(["--family", "kernels"]))?;
    }
    println!("\nThe products that cuBLASLt serves, by its stand-in:");
    let products = PRODUCTS.iter().flat_map(|op| ["--op", op]);
    judged(judge(&library).args(products).args(without_long()).args(sampled()))?;
    println!("\nLarge, many and repeated calls of one op of each kind:");
    let ops = OF_EACH_KIND.iter().flat_map(|op| ["--op", op]);
    let families = LONG.iter().flat_map(|family| ["--family", family]);
    judged(judge(&library).arg("--quick").args(ops.chain(families)))?;
    let usual = || {
        let mut command = judge(&library);
        command.env(DNN, keyway_test_cuda_driver::dnn(&driver)).arg("--quick");
        command
    };
    println!("\nThe convolutions that cuDNN serves, by its stand-in:");
    let ops = CONVOLUTIONS.iter().flat_map(|op| ["--op", op]);
    let without = OF_MEMORY.iter().flat_map(|family| ["--without-family", family]);
    judged(usual().args(ops).args(without).args(without_long()))?;
    println!("\nAll ops, in blocks that the backend caches and splits:");
    judged(usual().args(OF_MEMORY.iter().flat_map(|family| ["--family", family])))
}
