//! The parameters of one direction of a recurrent layer, or of a cell.

use crate::nn::{ModuleError, ModuleVisitor, Parameter, init};
use crate::{Result, Tensor};
use keyway_dispatcher::error::Error;

/// The sizes that determine the shapes of [`Weights`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Width of the input.
    pub(super) input: usize,
    /// Width of the cell.
    pub(super) hidden: usize,
    /// Width of the projected hidden state, if it is projected.
    pub(super) projection: Option<usize>,
}

impl Sizes {
    /// Width of the output and of the first tensor of the state.
    pub(super) fn output(&self) -> usize {
        self.projection.unwrap_or(self.hidden)
    }
}

/// The parameters.
#[derive(Debug)]
pub(super) struct Weights {
    /// `[gates * hidden, input]`.
    weight_ih: Parameter,
    /// `[gates * hidden, output]`.
    weight_hh: Parameter,
    /// Both `[gates * hidden]`: of the input, of the hidden state.
    biases: Option<[Parameter; 2]>,
    /// `[projection, hidden]`.
    weight_hr: Option<Parameter>,
}

impl Weights {
    /// Parameters uniform in `±1 / sqrt(hidden)`.
    pub(super) fn new(gates: usize, sizes: Sizes, bias: bool) -> Result<Weights> {
        let bound = if sizes.hidden > 0 { 1.0 / (sizes.hidden as f64).sqrt() } else { 0.0 };
        let rows = gates.saturating_mul(sizes.hidden);
        let matrix = |rows, columns| Parameter::new(init::uniform((rows, columns), bound)?);
        let vector = || Parameter::new(init::uniform(rows, bound)?);
        Ok(Weights {
            weight_ih: matrix(rows, sizes.input)?,
            weight_hh: matrix(rows, sizes.output())?,
            biases: if bias { Some([vector()?, vector()?]) } else { None },
            weight_hr: sizes.projection.map(|width| matrix(width, sizes.hidden)).transpose()?,
        })
    }

    /// The input times its weight, plus its bias: `[rows, gates * hidden]` of `[rows, input]`.
    pub(super) fn of_input(&self, input: &Tensor) -> Result<Tensor> {
        input.linear(&self.weight_ih.get(), self.bias(0).as_ref())
    }

    /// The hidden state times its weight, plus its bias: `[rows, gates * hidden]` of `[rows, output]`.
    pub(super) fn of_hidden(&self, hidden: &Tensor) -> Result<Tensor> {
        hidden.linear(&self.weight_hh.get(), self.bias(1).as_ref())
    }

    /// The hidden state after the projection, if there is one.
    pub(super) fn projected(&self, hidden: Tensor) -> Result<Tensor> {
        match &self.weight_hr {
            Some(weight) => hidden.linear(&weight.get(), None),
            None => Ok(hidden),
        }
    }

    /// The weight, bias and projection of the hidden state.
    pub(super) fn of_state(&self) -> [Option<Tensor>; 3] {
        [Some(self.weight_hh.get()), self.bias(1), self.weight_hr.as_ref().map(Parameter::get)]
    }

    fn bias(&self, i: usize) -> Option<Tensor> {
        self.biases.as_ref().map(|biases| biases[i].get())
    }

    /// Registers the parameters, whose names end with `suffix`: `weight_ih_l0_reverse`.
    pub(super) fn visit<'a>(&'a self, suffix: &str, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter(&format!("weight_ih{suffix}"), &self.weight_ih);
        visitor.parameter(&format!("weight_hh{suffix}"), &self.weight_hh);
        if let Some([of_input, of_hidden]) = &self.biases {
            visitor.parameter(&format!("bias_ih{suffix}"), of_input);
            visitor.parameter(&format!("bias_hh{suffix}"), of_hidden);
        }
        if let Some(weight) = &self.weight_hr {
            visitor.parameter(&format!("weight_hr{suffix}"), weight);
        }
    }
}

/// The error of a hidden width of 0.
pub(super) fn no_width(owner: &'static str) -> ModuleError {
    ModuleError::Option { owner, option: "hidden", expected: "1 or more", got: "0".to_string() }
}

/// Refuses a tensor of a state that has another shape.
pub(super) fn check_state(
    owner: &'static str,
    argument: &'static str,
    tensor: &Tensor,
    shape: &[usize],
) -> Result<()> {
    if tensor.shape() == shape {
        return Ok(());
    }
    let (expected, got) = (format!("of shape {shape:?}"), tensor.shape().into());
    Err(Error::Shape { op: owner, argument, expected, got }.into())
}
