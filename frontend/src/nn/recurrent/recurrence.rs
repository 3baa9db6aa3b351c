//! The formulas of the cells: the next state from the projected input and the state before.

use super::weights::Weights;
use crate::{Result, Tensor};

/// One kind of recurrence, whose state has `N` tensors. The first of them is the output.
pub(super) trait Recurrence<const N: usize>: Send + Sync {
    /// Number of gates: the rows of each weight are this many times the hidden width.
    const GATES: usize;
    /// Names of the tensors of the state, for messages.
    const STATE: [&'static str; N];

    /// The name of the mode of `rnn_layer`.
    fn mode(&self) -> &'static str;

    /// The next state. `projected` is the input times its weight, plus its bias: `[rows, gates * hidden]`; each tensor of the
    /// state is `[rows, width]`.
    fn step(&self, projected: &Tensor, state: &[Tensor; N], weights: &Weights) -> Result<[Tensor; N]>;
}

/// `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with `relu` (J. Elman, "Finding structure in time", 1990).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elman {
    pub(super) relu: bool,
}

impl Recurrence<1> for Elman {
    const GATES: usize = 1;
    const STATE: [&'static str; 1] = ["state"];

    fn mode(&self) -> &'static str {
        if self.relu { "rnn_relu" } else { "rnn_tanh" }
    }

    fn step(&self, projected: &Tensor, [h]: &[Tensor; 1], weights: &Weights) -> Result<[Tensor; 1]> {
        let sum = projected.add(&weights.of_hidden(h)?)?;
        Ok([if self.relu { sum.relu()? } else { sum.tanh()? }])
    }
}

/// The gated recurrent unit (K. Cho and others, 2014), with the reset gate after the product, as in cuDNN and PyTorch:
/// `r = σ(x_r + h_r)`, `z = σ(x_z + h_z)`, `n = tanh(x_n + r * h_n)`, `h' = (1 - z) * n + z * h`, where `x` and `h` are the
/// products of input and state with their weights, plus the biases.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GatedUnit;

impl Recurrence<1> for GatedUnit {
    const GATES: usize = 3;
    const STATE: [&'static str; 1] = ["state"];

    fn mode(&self) -> &'static str {
        "gru"
    }

    fn step(&self, projected: &Tensor, [h]: &[Tensor; 1], weights: &Weights) -> Result<[Tensor; 1]> {
        let (x, product) = (projected.chunk(3, 1)?, weights.of_hidden(h)?.chunk(3, 1)?);
        let reset = x[0].add(&product[0])?.sigmoid()?;
        let update = x[1].add(&product[1])?.sigmoid()?;
        let new = x[2].addcmul(&reset, &product[2])?.tanh()?;
        Ok([new.addcmul(&update, &h.sub(&new)?)?])
    }
}

/// Long short-term memory (S. Hochreiter and J. Schmidhuber, 1997; with the forget gate of F. Gers and others, 2000):
/// `i, f, o = σ(..)`, `g = tanh(..)` of the four parts of `W_ih x + b_ih + W_hh h + b_hh`, `c' = f * c + i * g`,
/// `h' = o * tanh(c')`, times `W_hr` with a projection (H. Sak and others, 2014).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongShortTerm;

impl Recurrence<2> for LongShortTerm {
    const GATES: usize = 4;
    const STATE: [&'static str; 2] = ["state.hidden", "state.cell"];

    fn mode(&self) -> &'static str {
        "lstm"
    }

    fn step(&self, projected: &Tensor, [h, c]: &[Tensor; 2], weights: &Weights) -> Result<[Tensor; 2]> {
        let gates = projected.add(&weights.of_hidden(h)?)?.chunk(4, 1)?;
        let (input, forget) = (gates[0].sigmoid()?, gates[1].sigmoid()?);
        let (candidate, output) = (gates[2].tanh()?, gates[3].sigmoid()?);
        let c = forget.mul(c)?.addcmul(&input, &candidate)?;
        let h = output.mul(&c.tanh()?)?;
        Ok([weights.projected(h)?, c])
    }
}

/// The state of an LSTM. In an [`Lstm`](super::Lstm) the tensors are `[layers * directions, batch, width]`, in an
/// [`LstmCell`](super::LstmCell) `[batch, width]`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{LstmCell, LstmState}};
/// let state = LstmState { hidden: Tensor::zeros((1, 4))?, cell: Tensor::ones((1, 4))? };
/// let next = LstmCell::new(3, 4)?.forward_with(&Tensor::ones((1, 3))?, Some(&state))?;
/// assert_eq!((next.hidden.shape(), next.cell.shape()), (&[1, 4][..], &[1, 4][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct LstmState {
    /// The hidden state, PyTorch's `h_n`. Its width is that of the projection, if there is one.
    pub hidden: Tensor,
    /// The cell state, PyTorch's `c_n`.
    pub cell: Tensor,
}

/// The caller's form of the tensors that a [`Recurrence`] takes.
pub(super) trait State<const N: usize>: Sized {
    fn from_tensors(tensors: [Tensor; N]) -> Self;
    fn tensors(&self) -> [Tensor; N];
}

impl State<1> for Tensor {
    fn from_tensors([tensor]: [Tensor; 1]) -> Tensor {
        tensor
    }

    fn tensors(&self) -> [Tensor; 1] {
        [self.clone()]
    }
}

impl State<2> for LstmState {
    fn from_tensors([hidden, cell]: [Tensor; 2]) -> LstmState {
        LstmState { hidden, cell }
    }

    fn tensors(&self) -> [Tensor; 2] {
        [self.hidden.clone(), self.cell.clone()]
    }
}

/// An array of results as the result of an array.
pub(super) fn collected<const N: usize>(results: [Result<Tensor>; N]) -> Result<[Tensor; N]> {
    let tensors = results.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(tensors.try_into().unwrap_or_else(|_| unreachable!("{N} results")))
}
