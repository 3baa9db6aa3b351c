//! What the runner and a worker say to each other: one line each, JSON after a mark. Lines without the mark
//! are something that a backend printed, and are passed over.

use crate::outcome::Outcome;
use keyway::dispatcher::loader::precheck::Stamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Begins every line of a worker.
pub const MARK: &str = "@keyway-conformance ";

/// A case as a worker names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseName {
    /// Its id.
    pub id: String,
    /// Its family.
    pub family: String,
    /// The op, or what else it is about.
    pub op: String,
    /// The dtype under test; empty if there is none.
    pub dtype: String,
    /// Which sample of the op.
    pub sample: usize,
}

/// The kernels that a library registers for a device and a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernels {
    /// The device's name.
    pub device: String,
    /// The layout's name.
    pub layout: String,
    /// How many it registers.
    pub registered: usize,
    /// How many of them served a call.
    #[serde(default)]
    pub reached: usize,
}

/// What is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The plugin's name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Its library.
    #[serde(serialize_with = "keyway::dispatcher::lossy::path")]
    pub library: PathBuf,
    /// The library's file when it had just been loaded.
    pub stamp: Option<Stamp>,
    /// Its devices, the one that is judged by every case first.
    pub device: String,
    /// What the device is called, where it is not the CPU.
    #[serde(default)]
    pub device_name: Option<String>,
    /// Whether its work is done behind the host, by one device for all workers.
    #[serde(default)]
    pub asynchronous: bool,
    /// The ops that it has kernels of for strided tensors, each with a dtype.
    pub registers: Vec<(String, String)>,
    /// How many kernels it registers, by device and layout, in the order in which [`Said::Done`] numbers them.
    #[serde(default)]
    pub kernels: Vec<Kernels>,
    /// Libraries that could not be used, with the reason.
    pub rejected: Vec<String>,
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Its first words: what is judged, and the cases.
    Ready {
        /// What is judged.
        judged: Judged,
        /// Every case of the selection.
        cases: Vec<CaseName>,
    },
    /// There is nothing to judge.
    Refused {
        /// Why.
        reason: String,
        /// Whether the question was wrong, rather than the backend.
        usage: bool,
    },
    /// What came of a case.
    Done {
        /// Its id.
        id: String,
        /// What came of it.
        outcome: Outcome,
        /// The call in words, for a case that failed.
        call: Option<String>,
        /// What its results were judged by, where that is not the oracle.
        judged_by: Option<String>,
        /// The id of a simpler call that fails as well; `call` is that one.
        #[serde(default)]
        shrunk: Option<String>,
        /// The kernels that served a call for the first time in this worker, by their index in the target's list.
        #[serde(default)]
        reached: Vec<u32>,
        /// Whether the worker can judge no further: the plugin has panicked, and answers no call any more, or the thread's
        /// arithmetic is another.
        spoiled: bool,
        /// Whether the plugin has panicked.
        panicked: bool,
        /// How long it took.
        micros: u64,
    },
}
