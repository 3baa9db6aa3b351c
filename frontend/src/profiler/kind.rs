//! Kinds of calls: the description of a call in the table and the trace: the op, the plugin that ran it, and the shapes and
//! formats of its arguments and results. A kind is identified by an integer code, so that its text is formatted once.

use super::tensors;
use super::trace::CallInfo;
use keyway_dispatcher::DType;
use keyway_dispatcher::intern::DEVICES;
use keyway_dispatcher::ledger::Served;
use keyway_dispatcher::op::{Call, OpEntry};
use keyway_dispatcher::tensor::TensorRef;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Maximum number of tensors of a call that are described individually.
const MAX_TEXTS: usize = 16;

/// Copies of memory by an op.
#[derive(Clone, Copy, Default)]
pub(crate) struct Copies {
    /// Whether it copies elements on one device, as a copy to another memory format does.
    pub(crate) copies: bool,
    /// Whether it copies elements, perhaps to another device.
    pub(crate) moves: bool,
    /// Whether argument 0 is written and not read.
    pub(crate) skips_first: bool,
    /// Whether the call requests the format of its result.
    pub(crate) sets_format: bool,
}

/// The function that looks up the copies of an op; set when the key is registered, since definitions are above the profiler.
pub(super) static COPIES: OnceLock<fn(&OpEntry) -> Copies> = OnceLock::new();

/// Calls and their times.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) own: Duration,
    pub(super) total: Duration,
    pub(super) bytes: u64,
    pub(super) scratch: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.calls = self.calls.saturating_add(other.calls);
        self.own = self.own.saturating_add(other.own);
        self.total = self.total.saturating_add(other.total);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.scratch = self.scratch.saturating_add(other.scratch);
    }
}

/// A kind of call.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) op: &'static str,
    pub(super) info: Arc<CallInfo>,
    pub(super) tally: Tally,
    /// Formats of source and result of a copy that reorders elements.
    pub(super) reordering: Option<(Arc<str>, Arc<str>)>,
    /// The format of the arguments, and that of the results.
    pub(super) change: Option<(&'static str, &'static str)>,
    /// Whether it represents all kinds of its op without a separate row.
    pub(super) shared: bool,
}

impl Kind {
    /// The kind that represents this and all others of its op without a separate row.
    pub(super) fn for_others(&self, inputs: &str) -> Kind {
        let inputs = vec![inputs.to_string()];
        let info = CallInfo { inputs, outputs: Vec::new(), bytes: 0, ..(*self.info).clone() };
        let (op, tally) = (self.op, Tally::default());
        Kind { op, info: Arc::new(info), tally, reordering: None, change: None, shared: true }
    }
}

/// Writes the code of a call's kind. The first two integers identify the op and the plugin that ran it.
pub(super) fn encode(call: &Call<'_>, served: Option<Served>, outputs: &[TensorRef], code: &mut Vec<u64>) {
    code.clear();
    code.extend([call.args.op.id as u64, served.map_or(u64::MAX, number)]);
    tensors::of(call.args.values).for_each(|t| tensors::encode(t, code));
    code.push(u64::MAX);
    outputs.iter().for_each(|t| tensors::encode(t, code));
}

/// A unique number for each way in which a call can be run.
fn number(served: Served) -> u64 {
    match served {
        Served::Kernel(kernel) => std::ptr::from_ref(kernel).addr() as u64,
        Served::View => 0,
        Served::Host => 1,
        Served::Decomposition => 2,
        Served::Fallback => 3,
        Served::Nobody => 4,
    }
}

/// The texts of the first tensors, and the number of further ones.
fn texts<'a>(mut all: impl Iterator<Item = &'a TensorRef>) -> Vec<String> {
    let mut texts: Vec<String> = all.by_ref().take(MAX_TEXTS).map(|t| tensors::text(t)).collect();
    let more = all.count();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts
}

/// The kind of a call, with all counts zero.
pub(super) fn describe(call: &Call<'_>, served: Option<Served>, outputs: &[TensorRef]) -> Kind {
    let args = &call.args;
    let inputs = || tensors::of(args.values);
    let kernel = match served {
        Some(Served::Kernel(kernel)) => Some(kernel),
        _ => None,
    };
    let key = match (kernel, inputs().chain(outputs).next()) {
        (Some(kernel), _) => {
            let dtype = DType::from_code(kernel.dtype).map_or("any", DType::name);
            format!("{}/{}/{dtype}", DEVICES.name(kernel.device), kernel.layout)
        }
        (None, Some(t)) => format!("{}/{}/{}", t.device().name(), t.dispatch_layout(), t.dtype()),
        (None, None) => String::new(),
    };
    let Copies { copies, moves, skips_first, sets_format } =
        COPIES.get().map_or_else(Copies::default, |of| of(args.op));
    let touches = match served {
        Some(Served::Kernel(_)) => true,
        Some(Served::View) | None => false,
        Some(_) => moves,
    };
    // The target of a copy is an argument that is not read.
    let source = usize::from(skips_first);
    let read = inputs().skip(source).chain(outputs).map(|t| tensors::bytes(t)).sum();
    let reordering = match (inputs().nth(source), outputs.first()) {
        (Some(source), Some(result)) if copies && served.is_some() && tensors::reordered(source, result) => {
            Some((tensors::text(source).into(), tensors::text(result).into()))
        }
        _ => None,
    };
    // A call that requests a format, or returns the same memory in another shape, preserves the intended format.
    let shares = |t: &TensorRef| {
        inputs().any(|from| from.storage().zip(t.storage()).is_some_and(|(a, b)| a.same_as(b)))
    };
    let change = match served {
        None | Some(Served::View) => None,
        Some(_) if sets_format || outputs.iter().any(shares) => None,
        Some(_) => tensors::format_change(inputs(), outputs),
    };
    Kind {
        op: args.op.name,
        info: Arc::new(CallInfo {
            served_by: served.map_or("(failed)", Served::name).to_string(),
            key,
            inputs: texts(inputs()),
            outputs: texts(outputs.iter()),
            bytes: if touches { read } else { 0 },
        }),
        tally: Tally::default(),
        reordering,
        change,
        shared: false,
    }
}
