//! The error messages of a program whose folder of backends is refused, missing, or empty.
#![cfg(unix)]

use keyway::Tensor;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Set in the program without backends.
const ALONE: &str = "KEYWAY_TEST_ALONE";

/// The error of a call if `folder` is the only search path.
fn said(folder: &Path, nowhere: &Path) -> String {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["the_error_says_what_the_search_came_to", "--exact", "--nocapture"]).env(ALONE, "1");
    again.env("KEYWAY_BACKEND_PATH", folder).env("XDG_DATA_HOME", nowhere);
    let ran = again.output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{text}");
    text
}

#[test]
fn the_error_says_what_the_search_came_to() {
    if std::env::var_os(ALONE).is_some() {
        let one = Tensor::new([1.0f32]).unwrap();
        println!("{}", one.add(&one).unwrap_err());
        let nobodys = keyway::Device::new("test.keyway/nobody", 0).unwrap();
        println!("{}", Tensor::empty_with([1], (keyway::DType::F32, nobodys)).unwrap_err());
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (missing, empty, open) =
        (root.path().join("gone"), root.path().join("empty"), root.path().join("open"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&open).unwrap();
    let library = open.join(format!("{}any{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    fs::write(&library, "x").unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    for (folder, why) in [
        (&missing, "it does not exist".to_string()),
        (&empty, "it holds no library".to_string()),
        (&open, format!("only its owner may write {}", open.canonicalize().unwrap().display())),
    ] {
        let text = said(folder, &missing);
        let told = |line: &&str| {
            line.contains(folder.to_str().unwrap())
                && line.contains(&why)
                && line.contains("`keyway backend list`")
        };
        assert_eq!(text.lines().filter(told).count(), 2, "{folder:?}: {text}");
    }
}
