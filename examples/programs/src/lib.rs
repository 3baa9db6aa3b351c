//! What the programs share: the backend that was built beside them.

use keyway::{Result, runtime};

/// Loads the CPU backend from beside this program; where there is none, the installed ones are used.
///
/// # Errors
/// A library that cannot be loaded.
pub fn load_backend() -> Result<()> {
    let Some(program) = std::env::current_exe().ok() else { return Ok(()) };
    let beside = program.parent().into_iter().flat_map(|folder| [folder.to_path_buf(), folder.join("deps")]);
    let found = beside.map(|folder| folder.join("libkeyway_backend_cpu.so")).find(|path| path.exists());
    if let Some(path) = found {
        runtime::load_backends(&[path])?;
    }
    Ok(())
}
