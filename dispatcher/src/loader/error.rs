//! The reasons why a library was not loaded.
//!
//! Each variant stores the expected and the actual value as data; its text ends with what to do next. The path of the
//! library is in [`Rejected`](super::Rejected).

use super::cause::Cause;
use super::reason::{AbiRange, Distrust, HandedOver, SameAs};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The text for a search without results; for a single path that the user named, that it is missing.
fn none_in(tried: &[PathBuf]) -> String {
    match tried {
        [path] => format!(
            "expected a plugin library or a folder of such, got a path where nothing is: {}; correct it, or leave it out",
            path.display()
        ),
        _ => format!(
            "expected a plugin library, got none in: {}; install a backend or name its folder with `--backends` or \
             KEYWAY_BACKEND_PATH",
            list_paths(tried)
        ),
    }
}

fn list_paths(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nowhere".to_string();
    }
    paths.iter().map(|p: &PathBuf| Path::display(p).to_string()).collect::<Vec<_>>().join(", ")
}

fn shown(record: &Path) -> String {
    if record.as_os_str().is_empty() { String::new() } else { format!(" {}", record.display()) }
}

/// The beginning of the sentence about a quarantined library. The reason of a refusal itself contains the expected and
/// the actual value.
fn quarantined(cause: Cause) -> &'static str {
    match cause {
        Cause::Refused => "the library is",
        _ => "expected a library that can be loaded, got one",
    }
}

/// The reason why a library was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoadError {
    /// No plugin library was found.
    #[error("{}", none_in(.tried))]
    NotFound {
        /// Every path that was searched.
        #[serde(serialize_with = "crate::base::lossy::list")]
        tried: Vec<PathBuf>,
    },
    /// The system refused to read the file.
    #[error("expected a readable file, got: {detail}; check the file's permissions and its disk")]
    Unreadable {
        /// The system's message.
        detail: String,
    },
    /// The file has no content.
    #[error("expected a shared library, got an empty file; copy or build the library again")]
    Empty,
    /// The file is not a shared library of this system.
    #[error(
        "expected {expected}, got {got}; name the built library (a `.so` from `cargo build`), not another file"
    )]
    NotALibrary {
        /// The format that this system loads.
        expected: String,
        /// The format of the file.
        got: String,
    },
    /// The file is shorter than its headers state.
    #[error(
        "expected at least {expected} bytes, from the headers, got {got} bytes; the file is truncated, copy or build it again"
    )]
    Truncated {
        /// Bytes that the headers describe.
        expected: u64,
        /// Bytes that the file has.
        got: u64,
    },
    /// The file's headers are inconsistent.
    #[error("expected a whole library, got a damaged one: {what}; copy or build it again")]
    Damaged {
        /// The contradiction.
        what: String,
    },
    /// The library is for another processor.
    #[error("expected a library for {expected}, got one for {got}; install the build for this machine")]
    WrongArchitecture {
        /// This machine.
        expected: String,
        /// The library's machine.
        got: String,
    },
    /// The library has no manifest: it is not a Keyway plugin.
    #[error(
        "expected the section `{section}` of a Keyway plugin, got a library without it; if it is meant as a plugin, invoke `keyway_sdk::plugin!` in its root"
    )]
    NoManifest {
        /// The name of the section.
        section: String,
    },
    /// The manifest or a kernel record is not well formed.
    #[error(
        "expected {expected} in the plugin's manifest, got {got}; build the plugin again with the current `keyway-sdk`"
    )]
    BadManifest {
        /// The expected content.
        expected: String,
        /// The actual content.
        got: String,
    },
    /// The plugin supports only older ABI versions than this host.
    #[error(
        "expected {host}, got a plugin of the older {plugin}; build the plugin with a newer `keyway-sdk` or install its newer release"
    )]
    AbiTooOld {
        /// The ABI versions of the plugin.
        plugin: AbiRange,
        /// The ABI versions of this host.
        host: AbiRange,
    },
    /// The plugin supports only newer ABI versions than this host.
    #[error(
        "expected {host}, got a plugin of the newer {plugin}; update Keyway or install an older release of the plugin"
    )]
    AbiTooNew {
        /// The ABI versions of the plugin.
        plugin: AbiRange,
        /// The ABI versions of this host.
        host: AbiRange,
    },
    /// The loaded library negotiated a version that its manifest or the host does not have.
    #[error(
        "expected a version within {declared}, got {answered} from the plugin's negotiation; build the plugin again with one `keyway-sdk`"
    )]
    AbiDisagrees {
        /// The ABI versions that both sides declared.
        declared: AbiRange,
        /// The version that the library returned; 0 means none.
        answered: u32,
    },
    /// The library exports no entry symbol.
    #[error("expected the exported symbol `{}`, got a library without it; build the plugin as a `cdylib` (in C with KEYWAY_PLUGIN) and do not hide its symbols", symbols.join("` or `"))]
    MissingSymbol {
        /// The entry symbols; one is enough.
        symbols: Vec<String>,
    },
    /// The library needs a symbol that no library of this system defines.
    #[error(
        "expected every symbol that the library uses, got none for `{symbol}`; install the library that defines it in the version that the plugin was built for, or build the plugin on this system"
    )]
    UndefinedSymbol {
        /// The symbol.
        symbol: String,
        /// The library that should define it, if the system reports it.
        library: Option<String>,
    },
    /// The library needs another library that is not installed.
    #[error(
        "expected the library `{library}` that the plugin needs, got nothing of that name; install it or add its folder to the system's library path"
    )]
    MissingDependency {
        /// The missing library.
        library: String,
    },
    /// The library's abi_stable root module is not the frozen one.
    #[error(
        "expected the frozen root module of Keyway plugins, got: {detail}; build the plugin again with the current `keyway-sdk`"
    )]
    BadRoot {
        /// The useful part of abi_stable's message.
        detail: String,
    },
    /// The library lacks an interface that its version must have.
    #[error(
        "expected interface {interface} at ABI {version}, got none; build the plugin again with the current `keyway-sdk`"
    )]
    MissingInterface {
        /// The number of the interface.
        interface: u32,
        /// The negotiated version.
        version: u32,
    },
    /// A table of the library is not usable.
    #[error("expected {expected} in {table}[{index}], got {got}; report this to the plugin's author")]
    BadTable {
        /// The table.
        table: &'static str,
        /// The entry.
        index: usize,
        /// The value that the contract requires.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// The kernels that the plugin registers differ from its kernel records: some are missing from its build.
    #[error(
        "expected the {recorded} kernels that its records in the file name, got {handed_over}: `{kernel}` {what}; build the library again, without a tool that removes or merges sections"
    )]
    KernelsDiffer {
        /// The number of kernels in the records.
        recorded: u64,
        /// The number of registered kernels.
        handed_over: u64,
        /// A kernel that is only registered or only recorded.
        kernel: String,
        /// Whether `kernel` is the registered or the recorded one.
        what: HandedOver,
    },
    /// Another library is used instead.
    #[error("expected each plugin once, got {same} as {}; remove one of the two", of.display())]
    Duplicate {
        /// The library that is used.
        #[serde(serialize_with = "crate::base::lossy::path")]
        of: PathBuf,
        /// The property that both share.
        same: SameAs,
    },
    /// The library has a name of the Keyway project and was not installed as one of its plugins.
    #[error(
        "expected a name of the form `domain/name`, got `{name}`, which belongs to the Keyway project, from a library that was copied \
         into your data folder; if it is the project's, install it with `keyway backend install --reserved-name FILE`, else remove \
         it, and ask its author for a name of its own"
    )]
    ReservedName {
        /// The plugin's name.
        name: String,
    },
    /// Another user could have replaced the code.
    #[error("the library is not trusted: {why}")]
    Untrusted {
        /// The reason.
        why: Distrust,
    },
    /// This process opened another file at this path before, and the system would return that file again.
    #[error(
        "expected the file that this process opened at this path before, got another one; start the program again"
    )]
    Replaced,
    /// This processor lacks features that the library was compiled for.
    #[error("expected a processor with {}, got one without; install the variant of the plugin for this processor's level", missing.join(", "))]
    CpuFeatures {
        /// The features that this processor lacks.
        missing: Vec<String>,
    },
    /// The library panicked during its set-up.
    #[error(
        "expected the plugin's set-up to end, got a panic: {message}; report this to the plugin's author"
    )]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The library's set-up answered with an error.
    #[error(
        "expected the plugin's set-up to succeed, got status {status}: {message}; fix the cause that it names, or remove the plugin"
    )]
    InitFailed {
        /// The status code; see `keyway_sdk::abi::codes::status`.
        status: i32,
        /// The library's message.
        message: String,
    },
    /// An entry of the library cannot be registered; none of its entries is.
    #[error("expected to register the {what} `{name}`, got: {reason}; report this to the plugin's author")]
    Registration {
        /// Op, kernel, device, layout, interposer.
        what: &'static str,
        /// The name of the entry.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The library failed its trial in a separate process, now or earlier.
    #[error(
        "{} quarantined because {reason}; update the plugin, or clear the record{} with `keyway backend verify`, followed by the path of a library that is in no folder of the search order, to try it again",
        quarantined(*.cause),
        shown(.record)
    )]
    Quarantined {
        /// The kind of failure.
        cause: Cause,
        /// A description of the failure.
        reason: String,
        /// The record.
        #[serde(serialize_with = "crate::base::lossy::path")]
        record: PathBuf,
    },
    /// The library returned an error in its trial in a separate process.
    #[error("{reason}")]
    Trial {
        /// The library's error message in the trial.
        reason: String,
    },
    /// The library is not known good, and the probe program failed to work.
    #[error(
        "expected to try the library in a process of its own before it is loaded, got: {why}; fix that (a limit such as \
         `ulimit -n` or `-u`, a wrong KEYWAY_PROBE), or load libraries untried with KEYWAY_PROBE=off"
    )]
    Untried {
        /// The reason why the probe failed to work.
        why: String,
    },
    /// The machine's policy requires libraries to have passed the conformance suite on it.
    #[error(
        "expected a library that passed the conformance suite on this machine, as KEYWAY_CERTIFICATES asks for, got one that {}; judge \
         it with `keyway conformance {plugin}`",
        if *.failed { "failed it" } else { "was not judged here" }
    )]
    NotCertified {
        /// The plugin's name.
        plugin: String,
        /// Whether the library failed; otherwise it was never tested.
        failed: bool,
    },
    /// The file was replaced or changed since it was checked.
    #[error("expected the file that was checked, got one that has changed since; start the program again")]
    Changed,
    /// The system's loader refused the library for another reason.
    #[error(
        "expected the system to open the library, got: {detail}; fix the cause that it names, or build the plugin on this system"
    )]
    Open {
        /// The message of the system's loader.
        detail: String,
    },
}

impl LoadError {
    /// Whether this host refuses the same bytes on every machine and in every state.
    pub(crate) fn is_of_the_bytes(&self) -> bool {
        use LoadError as E;
        matches!(
            self,
            E::AbiDisagrees { .. }
                | E::MissingSymbol { .. }
                | E::BadRoot { .. }
                | E::MissingInterface { .. }
                | E::BadTable { .. }
                | E::KernelsDiffer { .. }
                | E::Registration { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_is_recorded_is_one_sentence() {
        let text = |cause, reason: &str| {
            LoadError::Quarantined { cause, reason: reason.to_string(), record: PathBuf::new() }.to_string()
        };
        let refused = text(Cause::Refused, "it was refused: expected more, got less");
        assert!(
            refused
                .starts_with("the library is quarantined because it was refused: expected more, got less; ")
        );
        assert_eq!(
            (refused.matches("expected").count(), refused.matches("got").count()),
            (1, 1),
            "{refused}"
        );
        assert!(
            text(Cause::Crash, "it crashed").starts_with("expected a library that can be loaded, got one")
        );
    }
}
