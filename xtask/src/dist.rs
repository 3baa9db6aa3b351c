//! `cargo xtask dist`: the program and the backends as separate files that run anywhere.
//!
//! ```text
//! dist/bin/keyway
//! dist/bin/keyway-probe
//! dist/include/keyway.h
//! dist/backends/libkeyway_backend_cpu-x86-64-v2.so
//! dist/backends/libkeyway_backend_cpu-x86-64-v3.so
//! dist/backends/libkeyway_backend_cpu-x86-64-v4.so
//! dist/backends/libkeyway_backend_channels_last-x86-64-v4.so    and for v2 and v3
//! ```
//!
//! A backend's list of known conformance failures is staged beside each of its libraries.

use crate::build::{self, Backend, Job};
use crate::failure::{Failure, Result};
use crate::header;
use crate::workspace::Workspace;
use clap::builder::PossibleValuesParser;
use std::fs;
use std::path::{Path, PathBuf};

/// The options of `cargo xtask dist`.
#[derive(clap::Args, Debug, Default)]
pub struct Options {
    /// Build CPU kernels only for the highest level that this machine's CPU supports: quicker, but `dist/` then serves no
    /// CPU that lacks this level. Without it, for every level.
    #[arg(long)]
    pub native: bool,
    /// Only these backends; all, if none is named.
    #[arg(value_parser = PossibleValuesParser::new(build::BACKENDS.iter().map(Backend::name)))]
    pub backends: Vec<String>,
}

/// The name of the list in a backend's folder, and the extension of the list of one library.
const KNOWN_FAILURES: &str = "known-failures.toml";

const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// Builds, stages and prints the sizes.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let staged = build_and_stage(workspace, options)?;
    report(workspace, &staged)
}

/// Builds and stages; returns the staged binaries.
pub fn build_and_stage(workspace: &Workspace, options: &Options) -> Result<Vec<PathBuf>> {
    let only = options.native.then(build::native_level);
    let wanted = |backend: &&Backend| {
        options.backends.is_empty() || options.backends.iter().any(|name| name == backend.name())
    };
    let wanted: Vec<Backend> = build::BACKENDS.iter().filter(wanted).copied().collect();
    let jobs = build::jobs(&wanted, build::X86, only);
    let (programs, libraries) = build::all(workspace, &jobs)?;
    let bin = folder(&workspace.path("dist/bin"))?;
    let backends = folder(&workspace.path("dist/backends"))?;

    let mut staged = Vec::new();
    for (name, program) in programs {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        staged.push(stage(&program, &bin, &name, PROGRAM_MODE)?);
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        stage(&workspace.path(licence), &workspace.path("dist"), licence, FILE_MODE)?;
    }
    let include = folder(&workspace.path("dist/include"))?;
    stage(&workspace.path(header::HEADER), &include, "keyway.h", FILE_MODE)?;
    let mut names = Vec::new();
    for (job, built) in jobs.iter().zip(libraries) {
        let name = library_name(job);
        let place = backends.join(&name);
        // The certificate is of the library previously at this path.
        if !matches!((fs::read(&place), fs::read(&built)), (Ok(old), Ok(new)) if old == new) {
            remove_certificate(&place)?;
        }
        staged.push(stage(&built, &backends, &name, FILE_MODE)?);
        let known = workspace.path(job.folder()).join(KNOWN_FAILURES);
        if known.exists() {
            let beside = Path::new(&name).with_extension(KNOWN_FAILURES);
            stage(&known, &backends, &beside.to_string_lossy(), FILE_MODE)?;
        }
        names.push(name);
    }
    remove_stale(&backends, &names)?;
    Ok(staged)
}

/// The staged program.
pub fn program(workspace: &Workspace) -> PathBuf {
    workspace.path("dist/bin/keyway").with_extension(std::env::consts::EXE_EXTENSION)
}

/// The staged path of a library that is built per level, for the highest level that this machine's CPU supports.
pub fn native_library(workspace: &Workspace, package: &'static str) -> PathBuf {
    let job = Job { package, level: build::native_level(), features: &[] };
    workspace.path("dist/backends").join(library_name(&job))
}

/// The staged file name of a library, with its level, so that the variants fit into one folder.
fn library_name(job: &Job) -> String {
    let stem = job.package.replace('-', "_");
    let level = job.level.map(|level| format!("-{level}")).unwrap_or_default();
    format!("{}{stem}{level}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Creates a folder that only its owner may write, whatever the umask: the loader refuses plugins from any other.
fn folder(path: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path).map_err(Failure::file("make", path))?;
    set_mode(path, FOLDER_MODE)?;
    if let Some(parent) = path.parent() {
        set_mode(parent, FOLDER_MODE)?;
    }
    Ok(path.to_path_buf())
}

/// Copies a file to its folder under another name and renames it, so that a program that runs the old file is not affected.
fn stage(source: &Path, folder: &Path, name: &str, mode: u32) -> Result<PathBuf> {
    let place = folder.join(name);
    let fresh = folder.join(format!(".{name}.{}", std::process::id()));
    let copied = fs::copy(source, &fresh)
        .map_err(Failure::file("copy", source))
        .and_then(|_| set_mode(&fresh, mode))
        .and_then(|()| fs::rename(&fresh, &place).map_err(Failure::file("write", &place)));
    if let Err(failure) = copied {
        // The first failure is the one to report; a leftover that cannot be removed has the same cause.
        let _ = fs::remove_file(&fresh);
        return Err(failure);
    }
    Ok(place)
}

/// Removes libraries of this repository's backends that this run did not stage: they are from older sources. Other plugins in
/// the folder belong to the user.
fn remove_stale(folder: &Path, staged: &[String]) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Failure::file("list", folder))? {
        let entry = entry.map_err(Failure::file("list", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_ours(&name) && !staged.contains(&name) {
            fs::remove_file(entry.path()).map_err(Failure::file("remove", &entry.path()))?;
            remove_certificate(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes the certificate beside a library if it is of another build.
fn remove_certificate(library: &Path) -> Result<()> {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let certificate = library.with_file_name(format!("{name}.certificate.json"));
    match fs::remove_file(&certificate) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::file("remove", &certificate)(error))
        }
        _ => Ok(()),
    }
}

fn is_ours(name: &str) -> bool {
    build::BACKENDS.iter().any(|backend| {
        let stem = format!("{}{}", std::env::consts::DLL_PREFIX, backend.package.replace('-', "_"));
        let rest = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(std::env::consts::DLL_SUFFIX));
        rest.is_some_and(|level| level.is_empty() || level.starts_with('-'))
    })
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(Failure::file("set the mode of", path))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> Result<()> {
    Ok(())
}

fn report(workspace: &Workspace, staged: &[PathBuf]) -> Result<()> {
    let mut total = 0;
    for path in staged {
        let bytes = fs::metadata(path).map_err(Failure::file("measure", path))?.len();
        total += bytes;
        let shown = path.strip_prefix(&workspace.root).unwrap_or(path);
        println!("{:>8.2} MB  {}", bytes as f64 / 1e6, shown.display());
    }
    println!("{:>8.2} MB  in {} files", total as f64 / 1e6, staged.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_after_its_level() {
        let job = |level| Job { package: "keyway-backend-cpu", level, features: &[] };
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        assert_eq!(library_name(&job(None)), format!("{prefix}keyway_backend_cpu{suffix}"));
        let wide = format!("{prefix}keyway_backend_cpu-x86-64-v4{suffix}");
        assert_eq!(library_name(&job(Some("x86-64-v4"))), wide);
        assert!(is_ours(&wide) && !is_ours(&format!("{prefix}keyway_backend_cpufreq{suffix}")));
    }

    #[test]
    fn staging_replaces_the_file_and_sets_the_mode() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let place = folder(&scratch.path().join("dist/backends")).expect("a folder");
        let source = scratch.path().join("built");
        for text in ["first", "second"] {
            fs::write(&source, text).expect("a source");
            set_mode(&source, 0o777).expect("a mode");
            let staged = stage(&source, &place, "lib.so", FILE_MODE).expect("a staged file");
            assert_eq!(fs::read_to_string(&staged).expect("its text"), text);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = |path: &Path| fs::metadata(path).expect("a mode").permissions().mode() & 0o777;
                assert_eq!((mode(&staged), mode(&place)), (0o644, 0o755));
            }
        }
        assert_eq!(fs::read_dir(&place).expect("a listing").count(), 1, "no leftovers");
    }

    #[test]
    fn a_missing_source_leaves_the_old_file() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let place = scratch.path();
        fs::write(place.join("lib.so"), "old").expect("an old file");
        let failure = stage(&place.join("absent"), place, "lib.so", FILE_MODE).expect_err("a failure");
        assert!(failure.to_string().contains("absent"), "{failure}");
        assert_eq!(fs::read_to_string(place.join("lib.so")).expect("its text"), "old");
    }

    #[test]
    fn stale_variants_go_and_other_plugins_stay() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let job = |level| Job { package: "keyway-backend-cpu", level, features: &[] };
        let (kept, stale) = (library_name(&job(Some("x86-64-v3"))), library_name(&job(Some("x86-64-v2"))));
        for name in [kept.as_str(), stale.as_str(), "libother.so"] {
            fs::write(scratch.path().join(name), "").expect("a file");
        }
        remove_stale(scratch.path(), std::slice::from_ref(&kept)).expect("removal");
        assert!(scratch.path().join(&kept).exists() && scratch.path().join("libother.so").exists());
        assert!(!scratch.path().join(&stale).exists());
    }
}
