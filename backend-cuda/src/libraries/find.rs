//! Search for NVIDIA's libraries other than the driver.
//!
//! The search order: the file that a [variable](Wanted::variable) names, which is then the only candidate; the system's
//! loader; a toolkit's folders; the folders of PyPI's packages, in the active Python environment and in the one that
//! contains this library. Files found here, not by the system's loader, must satisfy the rules for a named driver. A
//! process with another user's privileges ignores its environment.
//! environment.

use crate::driver::{file_of, is_named, trust, variable};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// An optional library.
pub struct Wanted {
    /// The library's name in messages.
    pub name: &'static str,
    /// The environment variable that names another file, by absolute path, or is `off` to disable it.
    pub variable: &'static str,
    /// The supported versions, newest first: the file's name, and the oldest driver, as `cuDriverGetVersion` counts.
    pub versions: &'static [(&'static str, i32)],
    /// The library's folders below `nvidia` among PyPI's packages.
    pub packages: &'static [&'static str],
}

/// The value of a variable that disables the library.
const OFF: &str = "off";

/// The candidates to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The library is disabled on request.
    Off,
    /// There is no candidate, for this reason.
    None(String),
    /// This file is the only candidate.
    Named(PathBuf),
    /// Names that the system's loader may resolve, then paths in folders, in this order.
    Search(Vec<&'static str>, Vec<PathBuf>),
}

/// The candidates for a driver of this version.
pub fn choose(wanted: &Wanted, version: i32) -> Choice {
    let own = own_path();
    chosen(wanted, version, is_named(), own.as_deref(), &variable)
}

/// As [`choose`], with this environment.
fn chosen(
    wanted: &Wanted,
    version: i32,
    driver_is_named: bool,
    own: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Choice {
    match variable(wanted.variable) {
        Some(value) if value == OFF => return Choice::Off,
        Some(value) => return Choice::Named(value.into()),
        None => {}
    }
    if driver_is_named {
        // These libraries open the driver themselves, by the name that the system resolves.
        return Choice::None(format!(
            "the driver is a named file, and what is on this system works with the system's driver; {} names a library for \
             this one",
            wanted.variable
        ));
    }
    let names =
        wanted.versions.iter().filter(|(_, oldest)| version >= *oldest).map(|(name, _)| *name).collect();
    Choice::Search(names, folders(wanted, own, variable))
}

/// Describes the search path, for any driver version.
pub fn places(wanted: &Wanted) -> String {
    if variable(wanted.variable).is_some() {
        return format!("{} lists them", wanted.variable);
    }
    let names = wanted.versions.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    let own = own_path();
    let folders = folders(wanted, own.as_deref(), &variable);
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    format!("as {names}, by the system's loader and then in {}", folders.join(", "))
}

/// The folders of toolkits and of PyPI's packages, including missing ones, which the search skips.
fn folders(wanted: &Wanted, own: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let toolkits = [named("CUDA_HOME"), named("CUDA_PATH")].into_iter().flatten();
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    let mut all: Vec<PathBuf> = toolkits.chain(usual).map(|toolkit| toolkit.join("lib64")).collect();
    let mut packages = Vec::new();
    for environment in [named("VIRTUAL_ENV"), named("CONDA_PREFIX")].into_iter().flatten() {
        let lib = environment.join("lib");
        packages.extend(site_packages(&lib));
        all.push(lib);
    }
    let is_site =
        |path: &&Path| path.file_name().is_some_and(|n| n == "site-packages" || n == "dist-packages");
    packages.extend(own.into_iter().flat_map(Path::ancestors).find(is_site).map(Path::to_path_buf));
    all.extend(packages.iter().flat_map(|package| {
        wanted.packages.iter().map(move |part| package.join("nvidia").join(part).join("lib"))
    }));
    let mut seen = Vec::new();
    all.retain(|path| {
        !seen.contains(path) && {
            seen.push(path.clone());
            true
        }
    });
    all
}

/// The folders `python3.*/site-packages` below a folder, sorted by name.
fn site_packages(lib: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let is_python = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("python3"));
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| is_python(&entry.file_name()))
        .map(|entry| entry.path().join("site-packages"))
        .collect();
    found.sort();
    found
}

/// The result of [`open`]: the library, or the reason why it is missing; `None` if it is disabled on request.
pub type Opened<T> = Result<T, Option<String>>;

/// Opens the first candidate that loads and is supported. `load` opens a path or a name.
pub fn open<T>(wanted: &Wanted, choice: &Choice, load: impl Fn(&Path) -> Result<T, String>) -> Opened<T> {
    let (names, folders) = match choice {
        Choice::Off => return Err(None),
        Choice::None(reason) => return Err(Some(reason.clone())),
        Choice::Named(path) => {
            let opened = trust(path).and_then(|()| load(path));
            let told = |reason| {
                let variable = wanted.variable;
                Some(format!("{variable} names {}, which {reason}; mend it or unset it", path.display()))
            };
            return opened.map_err(told);
        }
        Choice::Search(names, folders) => (names, folders),
    };
    let mut refused = Vec::new();
    for name in names {
        match load(Path::new(name)) {
            Ok(opened) => return Ok(opened),
            Err(reason) => refused.push(format!("{name} {reason}")),
        }
    }
    for path in folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name))) {
        if !path.exists() {
            continue;
        }
        match trust(&path).and_then(|()| load(&path)) {
            Ok(opened) => return Ok(opened),
            Err(reason) => refused.push(format!("{} {reason}", path.display())),
        }
    }
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(Some(format!("{}; looked into {}", refused.join("; "), folders.join(", "))))
}

/// The path of this library.
fn own_path() -> Option<PathBuf> {
    let own: fn() -> Option<PathBuf> = own_path;
    file_of(own as *const std::ffi::c_void)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const VARIABLE: &str = "A_VARIABLE";
    const WANTED: Wanted = Wanted {
        name: "a library",
        variable: VARIABLE,
        versions: &[("lib.so.13", 13000), ("lib.so.12", 12000)],
        packages: &["all", "own"],
    };

    fn with(variables: &[(&str, &str)], version: i32, driver_is_named: bool, own: &str) -> Choice {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        chosen(&WANTED, version, driver_is_named, Some(Path::new(own)), &variable)
    }

    #[test]
    fn a_named_file_is_the_only_one_and_off_is_none() {
        assert_eq!(with(&[(VARIABLE, "/a/b")], 13000, true, "/x"), Choice::Named("/a/b".into()));
        assert_eq!(with(&[(VARIABLE, "off")], 13000, false, "/x"), Choice::Off);
        assert!(matches!(with(&[], 13000, true, "/x"), Choice::None(reason) if reason.contains(VARIABLE)));
    }

    #[test]
    fn places_come_in_order_and_versions_by_the_driver() {
        let Choice::Search(names, folders) =
            with(&[("CUDA_HOME", "/t"), ("CUDA_PATH", "relative")], 13000, false, "/v/site-packages/k/l.so")
        else {
            panic!("a search");
        };
        assert_eq!(names, ["lib.so.13", "lib.so.12"]);
        let expected = [
            "/t/lib64",
            "/usr/local/cuda/lib64",
            "/opt/cuda/lib64",
            "/v/site-packages/nvidia/all/lib",
            "/v/site-packages/nvidia/own/lib",
        ];
        assert_eq!(folders, expected.map(PathBuf::from));
        let Choice::Search(names, _) = with(&[], 12090, false, "/x") else { panic!("a search") };
        assert_eq!(names, ["lib.so.12"], "a driver for CUDA 12 runs no library of 13");
    }

    #[test]
    fn the_first_that_is_trusted_and_opens_is_taken() {
        let root = std::env::temp_dir().join(format!("keyway-cuda-libraries-{}", std::process::id()));
        let folder = |name: &str| {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
            folder
        };
        let file = |folder: &Path, mode| {
            let path = folder.join("lib");
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let (open_to_all, broken, good) = (folder("a"), folder("b"), folder("c"));
        file(&open_to_all, 0o666);
        let (broken_file, good_file) = (file(&broken, 0o644), file(&good, 0o644));
        let load = |path: &Path| match path {
            path if path == good_file => Ok(path.to_path_buf()),
            path if path.is_absolute() => Err("is no library".to_string()),
            _ => Err("is not known".to_string()),
        };
        let search = |folders: &[&PathBuf]| {
            open(
                &WANTED,
                &Choice::Search(vec!["lib"], folders.iter().map(|f| f.to_path_buf()).collect()),
                load,
            )
        };
        assert_eq!(search(&[&open_to_all, &root, &broken, &good]), Ok(good_file.clone()));
        let told = search(&[&open_to_all, &root, &broken]).unwrap_err().unwrap();
        for part in ["lib is not known", "a/lib others may write", "b/lib is no library", "looked into"] {
            assert!(told.contains(part), "{told}");
        }
        let named = |path: &Path| open(&WANTED, &Choice::Named(path.into()), load);
        assert_eq!(named(&good_file), Ok(good_file.clone()));
        for (path, part) in [
            (broken_file.as_path(), "is no library"),
            (&open_to_all.join("lib"), "others may write"),
            (Path::new("lib"), "is no absolute path"),
            (&root.join("absent"), "cannot be read"),
        ] {
            let told = named(path).unwrap_err().unwrap();
            assert!(told.contains(part) && told.contains(VARIABLE), "{told}");
        }
        assert_eq!(open(&WANTED, &Choice::Off, load), Err(None));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
