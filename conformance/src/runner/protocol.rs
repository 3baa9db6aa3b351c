//! The protocol between the runner and a worker: one line for each message, JSON after a mark. Lines without the mark are
//! output of a backend, and are skipped.

use crate::outcome::Outcome;
use keyway::dispatcher::loader::precheck::Stamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The prefix of every line of a worker.
pub const MARK: &str = "@keyway-conformance ";

/// A case as listed by a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseName {
    /// The id of the case.
    pub id: String,
    /// The family of the case.
    pub family: String,
    /// The op, or another subject.
    pub op: String,
    /// The dtype under test; empty if none.
    pub dtype: String,
    /// Index of the op's sample.
    pub sample: usize,
    /// The kernel that its time-outs are counted for: op, dtype, device and layout.
    #[serde(default)]
    pub kernel: String,
}

/// The kernels that a library registers for a device and a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    /// The device's name.
    pub device: String,
    /// The layout's name.
    pub layout: String,
    /// The number of registered kernels.
    pub registered: usize,
    /// The number of kernels that ran a call.
    #[serde(default)]
    pub reached: usize,
}

/// The tested plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The plugin's library.
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    pub library: PathBuf,
    /// The library's file when it had just been loaded.
    pub stamp: Option<Stamp>,
    /// The plugin's devices, first the one that every case tests.
    pub device: String,
    /// The name of the device, if it is not the CPU.
    #[serde(default)]
    pub device_name: Option<String>,
    /// Whether the device works asynchronously and is shared by all workers.
    #[serde(default)]
    pub asynchronous: bool,
    /// The ops that it has kernels of for strided tensors, each with a dtype.
    pub registers: Vec<(String, String)>,
    /// The number of registered kernels, by device and layout, in the order of the indices of [`Said::Done`].
    #[serde(default)]
    pub kernels: Vec<Kernels>,
    /// Libraries that could not be used, with the reason.
    pub rejected: Vec<String>,
}

/// A message of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The first message: the tested plugin, and the cases.
    Ready {
        /// The tested plugin.
        judged: Judged,
        /// Every case of the selection.
        cases: Vec<CaseName>,
    },
    /// There is no target.
    Refused {
        /// The reason.
        reason: String,
        /// Whether the request was wrong, rather than the backend.
        usage: bool,
    },
    /// The outcome of a case.
    Done {
        /// The id of the case.
        id: String,
        /// The outcome of the case.
        outcome: Outcome,
        /// The call as text, for a case that failed.
        call: Option<String>,
        /// The reference of its results, if it is not the oracle.
        judged_by: Option<String>,
        /// The id of a simpler call that also fails; `call` is that one.
        #[serde(default)]
        shrunk: Option<String>,
        /// The kernels that ran a call for the first time in this worker, by index in the target's list.
        #[serde(default)]
        reached: Vec<u32>,
        /// Whether the worker can test no further: the plugin has panicked, and refuses further calls, or the thread's
        /// floating-point environment has changed.
        spoiled: bool,
        /// Whether the plugin has panicked.
        panicked: bool,
        /// Duration in microseconds.
        micros: u64,
    },
}
