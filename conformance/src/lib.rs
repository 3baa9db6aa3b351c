//! Tests a backend, case by case, against an independent oracle.
//!
//! Decisions:
//! - cases are generated from the op definitions alone: a new op has its own samples, a new family (`families`) applies to all
//!   ops; (`memory`), so that the tested backend has no part in its verdict;
//! - cases run in worker processes (`runner`): a case that kills its process is a failed row, not the end of the run.
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
