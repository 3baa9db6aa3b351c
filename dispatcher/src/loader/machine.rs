//! The state of this machine on which a trial's result depends, as short strings to compare.

use super::reason::AbiRange;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::OnceLock;

/// The ABI versions that this host supports.
pub const HOST_ABI: AbiRange = AbiRange { min: keyway_sdk::abi::ABI_MIN, max: keyway_sdk::abi::ABI_MAX };

/// Files whose content identifies a driver.
const DRIVERS: [&str; 2] = ["/proc/driver/nvidia/version", "/sys/module/amdgpu/version"];
/// Files that exist if a device is present.
const DEVICES: [&str; 4] = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dri"];
/// Changes with each library that is installed on a system with glibc.
const LIBRARIES: &str = "/etc/ld.so.cache";
/// The variable with folders from which libraries that a plugin needs, such as a driver, may be loaded instead.
const FOLDERS: &str = "LD_LIBRARY_PATH";

/// The prefix of the host's own variables and those of plugins.
const PREFIX: &str = "KEYWAY_";
const OWN: [&str; 7] =
    ["BACKEND_PATH", "CERTIFICATES", "FALLBACK", "NO_CC", "PROBE", "PROBE_LIBRARY", "PROBE_SECONDS"];

fn short(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn text(path: &str) -> String {
    super::side::read(Path::new(path)).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

/// This host's version: results of another version may not hold for it.
pub(super) fn host() -> String {
    let abi = HOST_ABI;
    format!("host {} abi {}-{}", env!("CARGO_PKG_VERSION"), abi.min, abi.max)
}

/// The variables that may change what a plugin does, such as `KEYWAY_CUDA_DRIVER`, as `name=value`, sorted by name.
pub(super) fn variables() -> Vec<String> {
    let of_plugins = |name: &str| name.strip_prefix(PREFIX).is_some_and(|rest| !OWN.contains(&rest));
    let all = std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    let mut all: Vec<_> = all
        .filter(|(name, value)| of_plugins(name) && !value.is_empty())
        .map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
        .collect();
    all.sort();
    all
}

/// A fingerprint of a file's state, if the path is a file.
fn state(path: &str) -> String {
    use std::os::unix::fs::MetadataExt;
    let state = |meta: std::fs::Metadata| format!("{} {} {}", meta.size(), meta.mtime(), meta.mtime_nsec());
    std::fs::metadata(path).map(state).unwrap_or_default()
}

/// The fingerprint of kernel, drivers, devices, the system's libraries, folders of others, and variables with the files
/// that they name.
pub(super) fn system() -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let mut facts = text("/proc/sys/kernel/osrelease");
        facts.extend(DRIVERS.map(text));
        facts.extend(DEVICES.map(|path| if Path::new(path).exists() { "1" } else { "0" }));
        facts.push_str(&state(LIBRARIES));
        for folder in std::env::split_paths(&std::env::var_os(FOLDERS).unwrap_or_default()) {
            let folder = folder.to_string_lossy().into_owned();
            facts.push_str(&format!("\n{folder} {}", state(&folder)));
        }
        for variable in variables() {
            let value = variable.split_once('=').map_or("", |(_, value)| value);
            facts.push_str(&format!("\n{variable} {}", state(value)));
        }
        format!("system {}", short(&facts))
    })
}

/// The fingerprint of [`system`] and the time since boot: a reboot repairs many drivers.
pub(super) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let boot = short(&text("/proc/sys/kernel/random/boot_id"));
        format!("{} boot {boot}", system())
    })
}

/// Whether a result obtained under `condition` is valid in the present state; `None` always is.
pub(super) fn holds(condition: Option<&str>) -> bool {
    condition.is_none_or(|condition| condition == host() || condition == system() || condition == boot())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_where_it_was_stated_and_no_other() {
        assert!(holds(None) && holds(Some(&host())) && holds(Some(system())) && holds(Some(boot())));
        assert!(!holds(Some("")) && !holds(Some("host 0.0.0 abi 1-1")) && !holds(Some("system 00 boot 00")));
        assert_ne!(system(), boot());
    }
}
