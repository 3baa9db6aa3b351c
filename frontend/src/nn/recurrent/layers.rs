//! Layers of recurrences in one or two directions over a batch of sequences.

use super::options::RecurrentOptions;
use super::packed::PackedSequence;
use super::recurrence::{Recurrence, collected};
use super::weights::{Sizes, Weights, check_state, no_width};
use crate::autograd::is_grad_enabled;
use crate::nn::{ModuleError, ModuleVisitor, TrainingMode};
use crate::ops::def::no_result;
use crate::ops::recurrent::rnn_layer;
use crate::rng::{self, Generator};
use crate::{Result, Tensor};
use keyway_dispatcher::op::Arg;

/// The layers of a module, each with the outputs of the one before as its input.
#[derive(Debug)]
pub(super) struct Layers<R, const N: usize> {
    owner: &'static str,
    pub(super) recurrence: R,
    sizes: Sizes,
    options: RecurrentOptions,
    /// Of each layer the forward direction, then the reverse one.
    weights: Vec<Weights>,
    pub(super) generator: Option<Generator>,
    mode: TrainingMode,
}

impl<R: Recurrence<N>, const N: usize> Layers<R, N> {
    pub(super) fn new(
        owner: &'static str,
        recurrence: R,
        sizes: Sizes,
        options: RecurrentOptions,
    ) -> Result<Layers<R, N>> {
        let wrong =
            |option, expected, got: String| Err(ModuleError::Option { owner, option, expected, got }.into());
        if options.num_layers == 0 {
            return wrong("num_layers", "1 or more", "0".to_string());
        }
        if sizes.hidden == 0 {
            return Err(no_width(owner).into());
        }
        if let Some(width) = sizes.projection.filter(|&width| width == 0 || width >= sizes.hidden) {
            return wrong("projection", "1 or more, below the hidden width", width.to_string());
        }
        if !(0.0..=1.0).contains(&options.dropout) {
            return wrong("dropout", "within 0..=1", options.dropout.to_string());
        }
        let directions = options.directions();
        let mut weights = Vec::new();
        for layer in 0..options.num_layers {
            let input = if layer == 0 { sizes.input } else { directions * sizes.output() };
            for _ in 0..directions {
                weights.push(Weights::new(R::GATES, Sizes { input, ..sizes }, options.bias)?);
            }
        }
        let mode = TrainingMode::default();
        Ok(Layers { owner, recurrence, sizes, options, weights, generator: None, mode })
    }

    pub(super) fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (i, weights) in self.weights.iter().enumerate() {
            let directions = self.options.directions();
            let direction = if i % directions == 0 { "" } else { "_reverse" };
            weights.visit(&format!("_l{}{direction}", i / directions), visitor);
        }
        visitor.training_mode(&self.mode);
        if let Some(generator) = &self.generator {
            visitor.generator("generator", generator);
        }
    }

    /// The outputs and the last state of sequences of equal length: `[length, batch, input]`, `[batch, length, input]` with
    /// `batch_first`, or `[length, input]` for one sequence, whose state has no batch dimension.
    pub(super) fn run(&self, input: &Tensor, state: Option<[Tensor; N]>) -> Result<(Tensor, [Tensor; N])> {
        if input.rank() == 2 {
            let batch = if self.options.batch_first { 0 } else { 1 };
            if let Some(state) = &state {
                self.check_state(state, None)?;
            }
            let state = state.map(|tensors| collected(tensors.map(|t| t.unsqueeze(1)))).transpose()?;
            let (output, state) = self.run(&input.unsqueeze(batch)?, state)?;
            return Ok((output.squeeze(batch)?, collected(state.map(|t| t.squeeze(1)))?));
        }
        let by_time = if self.options.batch_first && input.rank() == 3 {
            input.transpose(0, 1)?
        } else {
            input.clone()
        };
        let &[length, batch, width] = by_time.shape() else { return Err(self.wrong_input(input)) };
        if width != self.sizes.input || length == 0 {
            return Err(self.wrong_input(input));
        }
        let data = by_time.reshape((length * batch, width))?;
        let (data, state) = self.run_rows(data, &vec![batch; length], state)?;
        let output = data.reshape((length, batch, self.options.directions() * self.sizes.output()))?;
        Ok((if self.options.batch_first { output.transpose(0, 1)? } else { output }, state))
    }

    /// The outputs and the last state of sequences of several lengths. States are in the order of the sequences.
    pub(super) fn run_packed(
        &self,
        input: &PackedSequence,
        state: Option<[Tensor; N]>,
    ) -> Result<(PackedSequence, [Tensor; N])> {
        let data = input.data();
        if data.rank() != 2 || data.shape()[1] != self.sizes.input {
            let expected = format!("packed sequences of steps of {} elements", self.sizes.input);
            let got = data.shape()[1..].to_vec();
            return Err(ModuleError::Input { owner: self.owner, expected, got }.into());
        }
        let sorted = |state: [Tensor; N]| collected(state.map(|t| t.index_select(1, &input.sorted()?)));
        let state = match state {
            Some(state) => {
                self.check_state(&state, Some(input.len()))?;
                Some(sorted(state)?)
            }
            None => None,
        };
        let (data, state) = self.run_rows(data.clone(), input.batch_sizes(), state)?;
        let state = collected(state.map(|t| t.index_select(1, &input.unsorted()?)))?;
        Ok((input.with_data(data), state))
    }

    fn wrong_input(&self, input: &Tensor) -> crate::Error {
        let expected = match self.options.batch_first {
            true => format!("[batch, length, {0}] or [length, {0}] with 1 step or more", self.sizes.input),
            false => format!("[length, batch, {0}] or [length, {0}] with 1 step or more", self.sizes.input),
        };
        ModuleError::Input { owner: self.owner, expected, got: input.shape().to_vec() }.into()
    }

    /// The shapes of a state.
    fn state_shapes(&self, batch: usize) -> [[usize; 3]; N] {
        let mut shapes = [[self.weights.len(), batch, self.sizes.hidden]; N];
        shapes[0][2] = self.sizes.output();
        shapes
    }

    /// Checks the shapes of a state of `batch` sequences, or of one without a batch dimension.
    fn check_state(&self, state: &[Tensor; N], batch: Option<usize>) -> Result<()> {
        let shapes = self.state_shapes(batch.unwrap_or(1));
        for ((tensor, shape), argument) in state.iter().zip(shapes).zip(R::STATE) {
            let [layers, _, width] = shape;
            match batch {
                Some(_) => check_state(self.owner, argument, tensor, &shape)?,
                None => check_state(self.owner, argument, tensor, &[layers, width])?,
            }
        }
        Ok(())
    }

    /// All layers over rows in order of time, of which the first `batches[0]` are those of the first step, and so on.
    fn run_rows(
        &self,
        mut data: Tensor,
        batches: &[usize],
        state: Option<[Tensor; N]>,
    ) -> Result<(Tensor, [Tensor; N])> {
        let batch = batches.first().copied().unwrap_or(0);
        let state = match state {
            Some(state) => state,
            None => collected(self.state_shapes(batch).map(|shape| data.new_zeros(shape)))?,
        };
        self.check_state(&state, Some(batch))?;
        let directions = self.options.directions();
        let mut last: [Vec<Tensor>; N] = [const { Vec::new() }; N];
        for (layer, weights) in self.weights.chunks(directions).enumerate() {
            let mut outputs = Vec::with_capacity(directions);
            for (direction, weights) in weights.iter().enumerate() {
                let number = layer * directions + direction;
                let initial = collected(state.each_ref().map(|t| t.select(0, number)))?;
                let (output, state) = self.run_direction(weights, &data, batches, initial, direction == 1)?;
                outputs.push(output);
                last.iter_mut().zip(state).for_each(|(list, t)| list.push(t));
            }
            data = if directions == 1 { outputs.remove(0) } else { Tensor::cat(&outputs, 1)? };
            if layer + 1 < self.options.num_layers {
                let training = self.mode.is_training() && self.options.dropout > 0.0;
                data = rng::with_some_generator(self.generator.as_ref(), || {
                    data.dropout(self.options.dropout, training)
                })?;
            }
        }
        Ok((data, collected(last.map(|list| Tensor::stack(&list, 0)))?))
    }

    /// The outputs and the last state of one direction of a layer.
    fn run_direction(
        &self,
        weights: &Weights,
        data: &Tensor,
        batches: &[usize],
        initial: [Tensor; N],
        reverse: bool,
    ) -> Result<(Tensor, [Tensor; N])> {
        let projected = weights.of_input(data)?;
        let [weight_hh, bias_hh, weight_hr] = weights.of_state();
        let operands = [Some(&projected), weight_hh.as_ref(), bias_hh.as_ref(), weight_hr.as_ref()];
        let save =
            is_grad_enabled() && operands.into_iter().flatten().chain(&initial).any(|t| t.requires_grad());
        let batches: Vec<i64> = batches.iter().map(|&rows| rows as i64).collect();
        let mut made = rnn_layer::DEF
            .run_all(&[
                (&projected).into(),
                Arg::optional(initial.first()),
                Arg::optional(initial.get(1)),
                Arg::optional(weight_hh.as_ref()),
                Arg::optional(bias_hh.as_ref()),
                Arg::optional(weight_hr.as_ref()),
                Arg::Ints(&batches),
                Arg::Bool(reverse),
                Arg::Str(self.recurrence.mode()),
                Arg::Bool(save),
            ])?
            .into_iter();
        let mut next = || made.next().ok_or_else(|| no_result(&rnn_layer::DEF));
        let output = next()?;
        Ok((output, collected([(); N].map(|()| next()))?))
    }
}
