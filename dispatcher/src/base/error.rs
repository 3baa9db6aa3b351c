//! The errors of the dispatcher, in three families: the caller's mistake, the backend's trouble, and errors that a
//! layer above reported through the dispatcher. The loader's errors are in [`crate::loader`].

use crate::base::dtype::DType;
use crate::base::key::{Device, Layout};
use keyway_sdk::abi::codes::status;
use serde::Serialize;
use std::fmt;

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a call: expected and actual value, and what to do next. Small, because every call returns a `Result` of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not broadcast.
    #[error(
        "{op}: shapes {left:?} and {right:?} do not broadcast: dimension {dim} is {left_size} in one and \
         {right_size} in the other; make them equal, or one of them 1"
    )]
    Broadcast {
        /// The op.
        op: &'static str,
        /// The first shape.
        left: Box<[usize]>,
        /// The second shape.
        right: Box<[usize]>,
        /// The dimension, counted from the end (-1 is the last).
        dim: i64,
        /// The size of this dimension in `left`.
        left_size: usize,
        /// The size of this dimension in `right`.
        right_size: usize,
    },
    /// A tensor of a wrong shape.
    #[error("{op}: `{argument}` must be {expected}, but its shape is {got:?}")]
    Shape {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// The shape that was expected.
        expected: String,
        /// The actual shape.
        got: Box<[usize]>,
    },
    /// A tensor of a wrong dtype.
    #[error("{op}: `{argument}` must be {expected}, but it is {got}{}", cast_of(*got))]
    DType {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// The dtype that was expected.
        expected: String,
        /// The actual dtype.
        got: DType,
    },
    /// A dtype that a plugin named, but no plugin described.
    #[error(
        "dtype `{dtype}` is known only by its name, so no tensor can have it; install the plugin that brings the dtype"
    )]
    Undescribed {
        /// The dtype.
        dtype: DType,
    },
    /// Two dtypes without a common dtype.
    #[error("{op}: no dtype holds both {left} and {right}; convert one of them with `to_dtype`")]
    Promotion {
        /// The op.
        op: &'static str,
        /// The first dtype.
        left: DType,
        /// The second dtype.
        right: DType,
    },
    /// A tensor on a wrong device.
    #[error(
        "{op}: expected all tensors on {expected}, but `{argument}` is on {got}; move it with `to_device`"
    )]
    DeviceMismatch {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// The device that was expected.
        expected: Device,
        /// The actual device.
        got: Device,
    },
    /// An index outside its dimension.
    #[error("{op}: index {} is out of range for dimension {dim} of size {size}: expected {}..{size}", shown(*.index), -(*.size as i128))]
    Index {
        /// The op.
        op: &'static str,
        /// The actual index.
        index: i64,
        /// The dimension.
        dim: i64,
        /// The size of the dimension.
        size: usize,
    },
    /// A dimension that the tensor does not have.
    #[error("{op}: dimension {} is out of range for a tensor of {ndim} dimensions: expected {}..={}", shown(*.dim), -(*.ndim.max(&1) as i64), *.ndim.max(&1) as i64 - 1)]
    Dim {
        /// The op.
        op: &'static str,
        /// The actual dimension.
        dim: i64,
        /// The number of dimensions.
        ndim: usize,
    },
    /// Any other invalid argument value.
    #[error("{op}: `{argument}` must be {expected}, but got {got}")]
    Value {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// Sizes whose product overflows.
    #[error(
        "{op}: a tensor of shape {sizes:?} has more elements or bytes than an address can count; use smaller sizes"
    )]
    SizeOverflow {
        /// The op.
        op: &'static str,
        /// The sizes.
        sizes: Box<[usize]>,
    },
    /// An output that shares memory with itself, with another output, or in part with an input.
    #[error("{op}: the output's memory overlaps {with}; write into a `copy()` of it instead")]
    Overlap {
        /// The op.
        op: &'static str,
        /// The name of the tensor that overlaps it.
        with: &'static str,
    },
    /// A write to read-only memory, which is shared with other owners.
    #[error("{op}: the tensor is in read-only memory of `{owner}`; write to a `copy()` of it instead")]
    ReadOnly {
        /// The op.
        op: &'static str,
        /// The owner of the memory.
        owner: Box<str>,
    },
    /// Shared memory where uniquely owned memory is required.
    #[error("{op}: expected memory that this tensor uniquely owns, but {}; drop its clones, views and graphs, or take a `copy()` of it", held(*.tensors, *.storages))]
    Held {
        /// The op.
        op: &'static str,
        /// Handles of the tensor, or of the tensor that it is a view of: clones, views, graphs; 0 if these are not the
        /// reason.
        tensors: usize,
        /// Handles of its storage.
        storages: usize,
    },
    /// Memory that processes share, or a mapped file, that cannot be created or opened, or cannot be used this way.
    #[error("{op}: {reason}; {advice}")]
    Mapping {
        /// The op or function.
        op: &'static str,
        /// The reason.
        reason: String,
        /// What to do next.
        advice: &'static str,
    },
    /// A timeout: ops on other threads use the same integers and do not end.
    #[error(
        "{op}: expected other threads' ops that {} the same integers to end within a minute, but they did not; call it where \
         none of them waits for this thread, or give each a `copy()`",
        if *.writes { "write to" } else { "read" }
    )]
    InUse {
        /// The op.
        op: &'static str,
        /// Whether the other ops write; otherwise they read.
        writes: bool,
    },
    /// Memory that the host cannot read.
    #[error(
        "{op}: expected memory that the host reads, but the tensor is on {device}; copy it with `to_device(Device::CPU)` first"
    )]
    NotOnHost {
        /// The op.
        op: &'static str,
        /// The device of the tensor.
        device: Device,
    },
    /// There is no op with this name.
    #[error("there is no op named `{name}`; `keyway ops` lists those that are there")]
    UnknownOp {
        /// The name.
        name: String,
    },
    /// The call would run on another device, which [`Staying`](crate::fallback::Staying) forbids on this thread.
    #[error(
        "{op}: expected a kernel for {device}, but the call would run on `{to}`; move the tensors there first, or drop the guard that \
         keeps calls on their device"
    )]
    LeavesDevice {
        /// The op.
        op: &'static str,
        /// The device of the tensors.
        device: Device,
        /// The other device.
        to: Device,
    },
    /// No candidate supports these arguments.
    #[error("{0}")]
    MissingKernel(Box<MissingKernel>),
    /// No plugin provides a device.
    #[error(
        "no backend for device `{device}` is installed{}; use one that is there ({}), or install one, then `keyway backend list` shows \
         it{}",
        in_lower_case(*.device),
        crate::base::lacking::devices(),
        crate::base::lacking::after()
    )]
    NoDevice {
        /// The device.
        device: Device,
    },
    /// A device index out of range.
    #[error("device {device} does not exist: {count} device(s) of that kind are present{}", if .reason.is_empty() { String::new() } else { format!(" ({})", .reason) })]
    NoSuchDevice {
        /// The device.
        device: Device,
        /// The number of devices.
        count: u32,
        /// The backend's reason.
        reason: String,
    },
    /// An allocation that does not fit.
    #[error("out of memory on {device}: {}; free tensors, or use smaller ones", asked(*.requested, .detail))]
    OutOfMemory {
        /// The device.
        device: Device,
        /// Bytes requested; 0 if only the backend's message contains the number.
        requested: u64,
        /// The backend's message.
        detail: String,
    },
    /// An error in the values of elements, such as an index out of range, that a backend found and the op's rule cannot
    /// detect.
    #[error("{op}: {message} (found by backend `{plugin}`)")]
    Rejected {
        /// The op or the device function.
        op: &'static str,
        /// The plugin.
        plugin: &'static str,
        /// The argument, the expected and the actual value.
        message: String,
    },
    /// The error of another op that does a part of this op's work, in terms of arguments that this op does not have.
    #[error("{op}: in its part {inner}")]
    Part {
        /// The op that was called.
        op: &'static str,
        /// The error of the part.
        inner: Box<Error>,
    },
    /// A backend failed.
    #[error("{op}: backend `{plugin}` failed: {message}")]
    Backend {
        /// The op or the device function.
        op: &'static str,
        /// The plugin.
        plugin: &'static str,
        /// The status code, see `keyway_sdk::abi::codes::status`.
        status: i32,
        /// The backend's message.
        message: String,
    },
    /// A layout that the host cannot treat so.
    #[error("{op}: layout `{layout}` {reason}")]
    Layout {
        /// The op.
        op: &'static str,
        /// The layout.
        layout: Layout,
        /// The missing ability.
        reason: &'static str,
    },
    /// Something could not be registered.
    #[error("cannot register {what} `{name}`: {reason}")]
    Registration {
        /// Op, kernel, device, layout, interposer.
        what: &'static str,
        /// The name of the entry.
        name: String,
        /// The reason.
        reason: String,
    },
    /// An error of a layer above the backends, such as autograd, passed through.
    #[error("{0}")]
    Layer(Box<dyn std::error::Error + Send + Sync>),
}

/// Formats a number for a message. A number larger than i64 is passed to an op as the maximum i64, which the text states.
///
/// ```
/// use keyway_dispatcher::error::shown;
/// assert_eq!((shown(-3), shown(i64::MAX)), ("-3".to_string(), "9223372036854775807 or more".to_string()));
/// ```
pub fn shown(number: i64) -> String {
    if number == i64::MAX { format!("{number} or more") } else { number.to_string() }
}

/// [`shown`] for a list.
///
/// ```
/// use keyway_dispatcher::error::shown_all;
/// assert_eq!(shown_all(&[2, i64::MAX]), "[2, 9223372036854775807 or more]");
/// ```
pub fn shown_all(numbers: &[i64]) -> String {
    format!("[{}]", numbers.iter().map(|&number| shown(number)).collect::<Vec<_>>().join(", "))
}

/// Describes the other owners of memory that must be uniquely owned.
/// The advice to cast, which complex numbers cannot follow.
fn cast_of(got: DType) -> &'static str {
    if got.is_complex() { "" } else { "; convert it with `to_dtype`" }
}

fn held(tensors: usize, storages: usize) -> String {
    match (tensors, storages) {
        (0, 0 | 1) => "a graph refers to it".to_string(),
        (0, storages) => format!("{storages} tensors share it"),
        (1, _) => "a graph refers to the tensor".to_string(),
        (tensors, _) => format!("{tensors} clones, views or graphs hold the tensor"),
    }
}

/// The lower-case spelling to suggest for a device name in capitals, since no backend has such a name.
fn in_lower_case(device: Device) -> String {
    let (name, lower) = (device.name(), device.name().to_lowercase());
    if lower == name { String::new() } else { format!(" (did you mean `{lower}`?)") }
}

/// The clause about the size of a failed allocation.
fn asked(requested: u64, detail: &str) -> String {
    let words = detail.strip_prefix("out of memory: ").unwrap_or(detail);
    // A backend's message begins with the number of bytes too; it is printed once.
    let rest = words.strip_prefix(&format!("{requested} bytes asked for"));
    match (requested, rest.map_or(words, |rest| rest.trim_start_matches([',', ';', ' ']))) {
        (0, "") => "the backend does not report the number of bytes".to_string(),
        (0, detail) => detail.to_string(),
        (requested, "") => format!("{requested} bytes were asked for"),
        (requested, detail) => format!("{requested} bytes were asked for ({detail})"),
    }
}

impl Error {
    /// Whether a kernel returned `UNSUPPORTED`: it refused the arguments and has written nothing.
    #[inline]
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Error::Backend { status: status::UNSUPPORTED, .. })
    }

    /// Converts this error to an error of `outer`, which is implemented with the failed op: the caller knows the op or
    /// function that was called, not the ops that implement it. If the invalid argument is one of `params`, the parameters
    /// of `outer`, the error names that parameter; otherwise the error of the part is wrapped in [`Error::Part`].
    ///
    /// ```
    /// use keyway_dispatcher::Error;
    /// let wrong = || Error::Value { op: "narrow", argument: "length", expected: "2 at most".into(), got: "3".into() };
    /// let known = wrong().within("narrow_scatter", &["self", "src", "length"]);
    /// assert_eq!(known.to_string(), "narrow_scatter: `length` must be 2 at most, but got 3");
    /// let part = wrong().within("chunk", &["self", "chunks"]);
    /// assert_eq!(part.to_string(), "chunk: in its part narrow: `length` must be 2 at most, but got 3");
    /// ```
    #[must_use]
    pub fn within(mut self, outer: &'static str, params: &[&str]) -> Error {
        let known = |argument: &str| params.contains(&argument);
        match &mut self {
            Error::MissingKernel(missing) if missing.name() != outer => missing.within.push(outer),
            Error::Part { op, .. } | Error::Broadcast { op, .. } | Error::Promotion { op, .. } => *op = outer,
            Error::Shape { op, argument, .. }
            | Error::DType { op, argument, .. }
            | Error::DeviceMismatch { op, argument, .. }
            | Error::Value { op, argument, .. }
                if *op == outer || known(argument) =>
            {
                *op = outer;
            }
            Error::Rejected { op, message, .. }
                if *op == outer || params.iter().any(|p| message.contains(&format!("`{p}`"))) =>
            {
                *op = outer;
            }
            Error::Index { op, .. }
            | Error::Dim { op, .. }
            | Error::SizeOverflow { op, .. }
            | Error::ReadOnly { op, .. }
            | Error::Held { op, .. }
            | Error::Mapping { op, .. }
            | Error::InUse { op, .. }
            | Error::NotOnHost { op, .. }
            | Error::LeavesDevice { op, .. } => *op = outer,
            Error::Overlap { op, .. } | Error::Layout { op, .. } if *op == outer => {}
            Error::Shape { .. }
            | Error::DType { .. }
            | Error::DeviceMismatch { .. }
            | Error::Value { .. }
            | Error::Rejected { .. }
            | Error::Overlap { .. }
            | Error::Layout { .. } => return Error::Part { op: outer, inner: Box::new(self) },
            _ => {}
        }
        self
    }
}

impl Error {
    /// Replaces argument names, for a function whose arguments have other names than those of the op that it calls: pairs
    /// of the op's name and the function's name.
    ///
    /// ```
    /// use keyway_dispatcher::Error;
    /// let wrong = Error::Value { op: "where", argument: "self", expected: "bool".into(), got: "3".into() };
    /// let named = wrong.with_arguments(&[("self", "a"), ("other", "b")]);
    /// assert_eq!(named.to_string(), "where: `a` must be bool, but got 3");
    /// ```
    #[must_use]
    pub fn with_arguments(mut self, names: &[(&str, &'static str)]) -> Error {
        if let Error::Shape { argument, .. }
        | Error::DType { argument, .. }
        | Error::DeviceMismatch { argument, .. }
        | Error::Value { argument, .. } = &mut self
            && let Some((_, own)) = names.iter().find(|(of_op, _)| of_op == argument)
        {
            *argument = own;
        }
        self
    }
}

/// The details of a missing kernel.
#[derive(Clone, Debug, Serialize)]
pub struct MissingKernel {
    /// The op.
    pub op: &'static str,
    /// Device, layout and dtype.
    pub key: String,
    /// The tensor arguments.
    pub arguments: Vec<String>,
    /// The ops whose decompositions contain the call, the innermost first.
    pub within: Vec<&'static str>,
    /// The kernels that were called and refused these arguments, with their reasons.
    pub refused: Vec<String>,
    /// The kernels registered for this op, one line for each plugin.
    pub registered: Vec<String>,
    /// The registered key nearest to the requested one.
    pub nearest: Option<String>,
    /// The device to which the fallback policy redirected the call, and the result.
    pub fallback: Option<String>,
    /// The command that helps.
    pub help: String,
}

impl MissingKernel {
    /// The op that was called.
    fn name(&self) -> &'static str {
        self.within.last().unwrap_or(&self.op)
    }
}

impl fmt::Display for MissingKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within.last() {
            None => writeln!(f, "{}: no kernel for {}", self.op, self.key)?,
            Some(outer) => {
                writeln!(
                    f,
                    "{outer}: no kernel of its own, and its part `{}` has none for {}",
                    self.op, self.key
                )?;
            }
        }
        writeln!(
            f,
            "  arguments: {}",
            if self.arguments.is_empty() { "none".into() } else { self.arguments.join("; ") }
        )?;
        for line in &self.refused {
            writeln!(f, "  does not serve these arguments: {line}")?;
        }
        if self.registered.is_empty() && self.refused.is_empty() {
            writeln!(f, "  registered for this op: nothing")?;
        }
        for line in &self.registered {
            writeln!(f, "  registered for this op: {line}")?;
        }
        if let Some(nearest) = &self.nearest {
            writeln!(f, "  nearest: {nearest}")?;
        }
        if let Some(fallback) = &self.fallback {
            writeln!(f, "  fallback: {fallback}")?;
        }
        write!(f, "  {}", self.help)
    }
}

const _: () = assert!(size_of::<Error>() <= 80);
