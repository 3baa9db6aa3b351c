//! NVRTC, of a pinned version, from PyPI.

use crate::failure::{Failure, Result};
use crate::workspace::{self, Workspace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package and its version: the images' text depends on it.
const PACKAGE: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";
/// The interpreter that creates the environment.
const PYTHON: &str = "python3";
/// The program that calls the compiler.
const SCRIPT: &str = include_str!("nvrtc.py");

/// An environment that has the compiler.
pub struct Compiler {
    python: PathBuf,
    script: PathBuf,
    folder: PathBuf,
}

impl Compiler {
    /// The environment below the target folder, created if missing.
    pub fn find(workspace: &Workspace) -> Result<Compiler> {
        let folder = workspace.target().join("nvrtc").join(PACKAGE.replace("==", "-"));
        let python = folder.join("bin/python");
        let ready = folder.join("ready");
        if !ready.exists() {
            let advice = "Python 3 with `venv` and `pip`, and a way to PyPI, are needed to compile kernels";
            let mut make = workspace.command(PYTHON);
            make.args(["-m", "venv"]).arg(&folder).stdout(Stdio::null());
            workspace::run(&mut make, advice)?;
            let mut install = workspace.command(&python);
            install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]);
            workspace::run(&mut install, advice)?;
            std::fs::write(&ready, "").map_err(Failure::file("write", &ready))?;
        }
        let script = folder.join("nvrtc.py");
        std::fs::write(&script, SCRIPT).map_err(Failure::file("write", &script))?;
        Ok(Compiler { python, script, folder })
    }

    /// The image of a family for a chip.
    pub fn compile(&self, kernels: &Path, family: &str, target: &str) -> Result<Vec<u8>> {
        let out = self.folder.join(format!("{family}.{target}.ptx"));
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(kernels).args([family, target]).arg(&out);
        workspace::run(&mut command, "the compiler's messages stand above")?;
        std::fs::read(&out).map_err(Failure::file("read", &out))
    }
}
