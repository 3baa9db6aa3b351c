//! The recording of a forward pass: its calls, with the time of each in each format.

use super::order::{self, FORMATS, NEITHER, is_image, is_in_place, tensors};
use crate::arguments::replacing;
use crate::ops::conv;
use crate::ops::def::{OpDef, OpFlags, definition};
use crate::profiler::module_path;
use crate::{DType, Device, Error, Result, Tensor, device};
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::error::Result as DispatchResult;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::op::{Call, Out, Outputs};
use keyway_dispatcher::tensor::TensorRef;
use std::collections::HashMap;
use std::time::Instant;

/// The origin of a tensor of a forward pass.
pub(super) enum Origin {
    /// An input, or a tensor that is not a parameter.
    Given,
    /// The parameter of this name.
    Parameter(String),
    /// The result of a call.
    Call(Recorded),
}

/// An input tensor of the graph, or a call with its results.
pub(super) struct Node {
    pub(super) origin: Origin,
    /// The format of the result for each format of the node; [`NEITHER`] for another stride order.
    pub(super) produces: [usize; 2],
}

/// An argument that may be converted.
pub(super) struct Input {
    /// The index among the call's tensor arguments.
    pub(super) argument: usize,
    /// The node that produces it.
    pub(super) from: usize,
    /// The size of its elements, in bytes.
    pub(super) bytes: u64,
    /// The seconds of a conversion from a format, or from [`NEITHER`], to a format.
    pub(super) conversion: [[f64; 2]; 3],
}

/// The way in which a plan treats a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Arguments are converted to the format chosen for the call.
    Free,
    /// The op depends on the strides of its arguments, which are passed in their original format.
    Fixed,
    /// The call has no image among its arguments, or determines the format itself.
    None,
}

pub(super) struct Recorded {
    pub(super) path: String,
    pub(super) op: &'static str,
    pub(super) in_place: bool,
    pub(super) choice: Choice,
    /// The shape of the first result.
    pub(super) shape: Vec<usize>,
    /// The device of the first image among the arguments, or of the first result.
    pub(super) device: Device,
    /// The dtype of the same tensor.
    pub(super) dtype: DType,
    /// The format of the first image among the arguments.
    pub(super) before: usize,
    /// Whether all images had that format.
    pub(super) is_uniform: bool,
    pub(super) inputs: Vec<Input>,
    /// The size of the images among the arguments, in bytes.
    pub(super) bytes: u64,
    /// The size of the first result, in bytes.
    pub(super) result_bytes: u64,
    /// The estimated multiply-adds of a convolution; 0 for other ops.
    pub(super) products: u64,
    /// The seconds in each format; infinite if the call fails in it.
    pub(super) seconds: [f64; 2],
    /// The seconds with the arguments in their original formats.
    pub(super) as_given: f64,
}

impl Recorded {
    /// Sets the time without the plan to that of the original format. Arguments of mixed formats cost no less than the cheaper
    /// format.
    pub(super) fn set_as_given(&mut self) {
        let least = self.seconds[0].min(self.seconds[1]);
        self.as_given =
            if self.is_uniform && self.before != NEITHER { self.seconds[self.before] } else { least };
    }
}

/// The recording of a thread.
pub(super) struct Recording {
    pub(super) nodes: Vec<Node>,
    /// The number of timed runs per call and format; with 0 each call runs once, for the format of its result.
    rounds: usize,
    /// The node of each tensor by its address. The tensors are retained, so that no other tensor gets the address.
    values: HashMap<usize, (TensorRef, usize)>,
    conversions: HashMap<(Vec<usize>, u16, usize, usize), f64>,
}

fn address(t: &TensorRef) -> usize {
    std::ptr::from_ref(&**t).addr()
}

impl Recording {
    pub(super) fn new(rounds: usize, parameters: Vec<(String, Tensor)>) -> Recording {
        let (values, conversions) = (HashMap::new(), HashMap::new());
        let mut recording = Recording { nodes: Vec::new(), rounds, values, conversions };
        for (name, tensor) in parameters {
            recording.add(Node { origin: Origin::Parameter(name), produces: [0, 1] }, tensor.as_ref());
        }
        recording
    }

    fn add(&mut self, node: Node, result: &TensorRef) {
        self.values.insert(address(result), (result.clone(), self.nodes.len()));
        self.nodes.push(node);
    }

    /// The node that produces a tensor; an unknown tensor becomes an input.
    fn origin(&mut self, t: &TensorRef) -> usize {
        if let Some((_, node)) = self.values.get(&address(t)) {
            return *node;
        }
        self.add(Node { origin: Origin::Given, produces: [order::of(t); 2] }, t);
        self.nodes.len() - 1
    }

    /// Runs a call and records it.
    pub(super) fn record(&mut self, call: &Call<'_>, below: KeySet) -> DispatchResult<Outputs> {
        // The profiler's stack names the modules around the call; measurements are not calls of the program.
        let path = module_path();
        let _unseen = KeyGuard::exclude(KeySet::of(DispatchKey::PROFILER));
        let choice = choice(call)?;
        let images: Vec<(usize, &TensorRef)> =
            tensors(call).enumerate().filter(|(_, t)| is_image(t)).collect();
        let mut inputs = Vec::new();
        if choice != Choice::None {
            for &(argument, t) in &images {
                let from = self.origin(t);
                inputs.push(Input { argument, from, bytes: bytes(t), conversion: self.conversion(t)? });
            }
        }
        let before = images.first().map_or(0, |(_, t)| order::of(t));
        let is_uniform = images.iter().all(|(_, t)| order::of(t) == before);
        let (mut seconds, mut produces) = ([0.0; 2], [before; 2]);
        let mut as_given = None;
        if choice == Choice::Free {
            for index in 0..FORMATS.len() {
                (seconds[index], produces[index]) =
                    self.measure(call, below, Some(index)).unwrap_or((f64::INFINITY, index));
            }
            as_given = match is_uniform && before != NEITHER {
                true => Some(seconds[before]),
                false if self.rounds > 0 => Some(self.measure(call, below, None)?.0),
                false => None,
            };
        }
        let start = Instant::now();
        let outputs = redispatch(call, below)?;
        let first = outputs.as_slice().first();
        if let Some(t) = first {
            device::synchronize(t.device())?;
        }
        let as_given = as_given.unwrap_or_else(|| start.elapsed().as_secs_f64());
        if choice != Choice::Free {
            seconds = [0, 1].map(|index| match choice {
                Choice::Fixed if !images.is_empty() && index != before => f64::INFINITY,
                _ => as_given,
            });
            produces = [outputs.as_slice().iter().find(|t| is_image(t)).map_or(before, order::of); 2];
        }
        let of = images.first().map(|(_, t)| *t).or(first);
        let recorded = Recorded {
            path,
            op: call.args.op.name,
            in_place: is_in_place(call),
            choice,
            shape: first.map(|t| t.sizes().to_vec()).unwrap_or_default(),
            device: of.map_or(Device::CPU, |t| t.device()),
            dtype: of.map_or(DType::F32, |t| t.dtype()),
            before,
            is_uniform,
            inputs,
            bytes: images.iter().map(|(_, t)| bytes(t)).sum(),
            result_bytes: first.map_or(0, bytes),
            products: first.map_or(0, |result| products(call, result)),
            seconds,
            as_given,
        };
        self.nodes.push(Node { origin: Origin::Call(recorded), produces });
        let node = self.nodes.len() - 1;
        for t in outputs.as_slice() {
            self.values.insert(address(t), (t.clone(), node));
        }
        Ok(outputs)
    }

    /// The minimum time of a call on copies of its arguments, with the images in the format of this index or unchanged, and the
    /// format of the first image among its results.
    fn measure(&self, call: &Call<'_>, below: KeySet, format: Option<usize>) -> DispatchResult<(f64, usize)> {
        let prepared = |t: &TensorRef| {
            if !t.is_strided() {
                return Ok(None);
            }
            let of = Tensor::from_ref(t.clone()).detach();
            let Some(format) = format.filter(|_| is_image(t)) else { return of.copy().map(Some) };
            let made = of.to(FORMATS[format])?;
            // A copy, so that the measured call does not modify the program's tensors.
            Ok(Some(if made.shares_storage(&of) { made.copy()? } else { made }))
        };
        replacing(&call.args, prepared, |args| self.time(&Call { args, out: call.out }, below, format))?
    }

    /// The minimum time of a call, and the format of the first image among its results; `format` is that of the arguments.
    fn time(&self, call: &Call<'_>, below: KeySet, format: Option<usize>) -> DispatchResult<(f64, usize)> {
        let mut produced = format.unwrap_or(NEITHER);
        let seconds = self.least_time(|| {
            let outputs = redispatch(call, below)?;
            if let Some(t) = outputs.as_slice().first() {
                device::synchronize(t.device())?;
            }
            produced = outputs.as_slice().iter().find(|t| is_image(t)).map_or(produced, order::of);
            Ok::<(), keyway_dispatcher::Error>(())
        })?;
        Ok((seconds, produced))
    }

    /// The minimum time of `run` in seconds, after one warm-up run; with 0 rounds that of a single run.
    fn least_time<E>(
        &self,
        mut run: impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<f64, E> {
        let mut least = f64::INFINITY;
        for round in 0..=self.rounds {
            let start = Instant::now();
            run()?;
            if round > 0 || self.rounds == 0 {
                least = least.min(start.elapsed().as_secs_f64());
            }
        }
        Ok(least)
    }

    /// The seconds of the conversions of a tensor from each format, each measured once per shape and dtype.
    fn conversion(&mut self, t: &TensorRef) -> Result<[[f64; 2]; 3]> {
        let mut seconds = [[0.0; 2]; 3];
        if self.rounds == 0 {
            return Ok(seconds);
        }
        let of = Tensor::from_ref(t.clone()).detach();
        seconds[0][1] = self.one_conversion(&of, 0, 1)?;
        seconds[1][0] = self.one_conversion(&of, 1, 0)?;
        seconds[NEITHER] = match order::of(t) {
            NEITHER => [self.one_conversion(&of, NEITHER, 0)?, self.one_conversion(&of, NEITHER, 1)?],
            _ => [seconds[0][1].max(seconds[1][0]); 2],
        };
        Ok(seconds)
    }

    fn one_conversion(&mut self, of: &Tensor, from: usize, to: usize) -> Result<f64> {
        let key = (of.shape().to_vec(), of.dtype().code(), from, to);
        if let Some(&known) = self.conversions.get(&key) {
            return Ok(known);
        }
        let source = FORMATS.get(from).map_or_else(|| Ok(of.clone()), |&format| of.to(format))?;
        let seconds = self.least_time(|| device::synchronize(source.to(FORMATS[to])?.device()))?;
        self.conversions.insert(key, seconds);
        Ok(seconds)
    }
}

/// The way in which a plan treats a call.
///
/// # Errors
/// A call that depends on strides of neither format: converting earlier tensors would change its result.
fn choice(call: &Call<'_>) -> Result<Choice> {
    let is = |flags| definition(call.args.op).is_some_and(|definition| definition.is(flags));
    if is(OpFlags::STRIDE_DEPENDENT) {
        if tensors(call).any(|t| order::of(t) == NEITHER) {
            return Err(Error::other(format!(
                "plan: expected `{op}` to be called on a tensor in row-major order or channels_last, got other strides, which may differ \
                 once formats change; call `contiguous` before `{op}`",
                op = call.args.name()
            )));
        }
        return Ok(Choice::Fixed);
    }
    let takes = matches!(call.out, Out::New | Out::InPlace) && tensors(call).all(|t| t.is_strided());
    let has = takes && !is(OpFlags::SETS_FORMAT) && tensors(call).any(is_image);
    Ok(if has { Choice::Free } else { Choice::None })
}

/// The multiply-adds of a convolution of an image by a kernel of the same rank, whose first dimension is the channels of the
/// result, or of the image if the convolution is transposed; 0 for other ops.
fn products(call: &Call<'_>, result: &TensorRef) -> u64 {
    let convolutions = [&conv::conv::DEF, &conv::conv_act::DEF, &conv::conv_input_grad::DEF];
    let is_convolution = |def: &&OpDef| convolutions.iter().any(|conv| std::ptr::eq(*conv, *def));
    if definition(call.args.op).filter(is_convolution).is_none() {
        return 0;
    }
    let mut operands = tensors(call);
    let (Some(image), Some(kernel)) = (operands.next(), operands.next()) else { return 0 };
    let channels = kernel.sizes().first().copied().unwrap_or(0);
    if !is_image(image) || kernel.ndim() != image.ndim() || channels == 0 {
        return 0;
    }
    let outputs = [image, result].into_iter().filter(|t| t.sizes().get(1) == Some(&channels));
    let elements = outputs.map(|t| t.numel() as u64).max().unwrap_or(0);
    elements.saturating_mul(kernel.numel() as u64 / channels as u64)
}

/// Bytes of the elements of a tensor.
fn bytes(t: &TensorRef) -> u64 {
    (t.numel() * t.dtype().size()) as u64
}
