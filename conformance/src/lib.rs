//! Judges a backend, case by case, by an oracle that shares nothing with it.
//!
//! Decisions:
//! - cases come from the op definitions and nowhere else: a new op brings its samples, a new family (`families`)
//!   applies to all ops;
//! - the oracle (`oracle`) is plain code over `array::Array`; inputs are placed in memory and results read from
//!   it by the suite itself (`memory`), so that nothing of the judged backend takes part in the judgement;
//! - cases run in worker processes (`runner`): what kills one is a red row, not the end of the run.
#![forbid(unsafe_code)]

mod arithmetic;
pub mod array;
pub mod axis_order;
pub mod call;
pub mod case;
pub mod certificate;
pub mod compare;
pub mod encode;
pub mod export;
pub mod extremes;
pub mod families;
mod growth;
pub mod inputs;
pub mod known;
pub mod known_layouts;
pub mod memory;
pub mod oracle;
pub mod outcome;
mod periodic;
pub mod process;
pub mod recorder;
pub mod report;
pub mod runner;
pub mod suite;
pub mod target;
