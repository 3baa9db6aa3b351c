//! The cells: one step of a recurrence.

use super::recurrence::{Elman, GatedUnit, LongShortTerm, LstmState, Recurrence, State, collected};
use super::weights::{Sizes, Weights, check_state, no_width};
use crate::error::called;
use crate::nn::{Module, ModuleError, ModuleVisitor};
use crate::{Result, Tensor};

/// The next state of a cell, `[batch, hidden]`, or `[hidden]` for an input without a batch. The initial state is 0.
fn step<R: Recurrence<N>, const N: usize>(
    owner: &'static str,
    recurrence: &R,
    weights: &Weights,
    sizes: Sizes,
    input: &Tensor,
    state: Option<[Tensor; N]>,
) -> Result<[Tensor; N]> {
    let wrong_input = || -> crate::Error {
        let expected = format!("[batch, {0}] or [{0}]", sizes.input);
        ModuleError::Input { owner, expected, got: input.shape().to_vec() }.into()
    };
    let alone = input.rank() == 1;
    let batched = |t: &Tensor| if alone { t.unsqueeze(0) } else { Ok(t.clone()) };
    let rows = batched(input)?;
    let &[batch, width] = rows.shape() else { return Err(wrong_input()) };
    if width != sizes.input {
        return Err(wrong_input());
    }
    let shape = [batch, sizes.hidden];
    let state = match state {
        None => collected([(); N].map(|()| rows.new_zeros(shape)))?,
        Some(state) => {
            for (t, argument) in state.iter().zip(R::STATE) {
                check_state(owner, argument, t, if alone { &shape[1..] } else { &shape })?;
            }
            collected(state.each_ref().map(batched))?
        }
    };
    let next = recurrence.step(&weights.of_input(&rows)?, &state, weights)?;
    if alone { collected(next.map(|t| t.squeeze(0))) } else { Ok(next) }
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident: $recurrence:ident, $states:literal, $state:ident, $gates:literal, $hidden:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            recurrence: $recurrence,
            weights: Weights,
            sizes: Sizes,
        }

        impl $name {
            /// A cell of this input width and hidden width.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Module, ", stringify!($name), "};\n",
                "let cell = ", stringify!($name), "::new(3, 4)?;\n",
                "assert_eq!(cell.state_dict()[\"bias_hh\"].shape(), [", $gates, " * 4]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A hidden width of 0; sizes whose product overflows.
            pub fn new(input: usize, hidden: usize) -> Result<$name> {
                $name::of(input, hidden, true)
            }

            /// A cell without biases.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Module, ", stringify!($name), "};\n",
                "assert_eq!(", stringify!($name), "::without_bias(3, 4)?.num_parameters(), ", $gates, " * 4 * (3 + 4));\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A hidden width of 0; sizes whose product overflows.
            pub fn without_bias(input: usize, hidden: usize) -> Result<$name> {
                $name::of(input, hidden, false)
            }

            fn of(input: usize, hidden: usize, bias: bool) -> Result<$name> {
                called(stringify!($name), &["input", "hidden"], || {
                    if hidden == 0 {
                        return Err(no_width(stringify!($name)).into());
                    }
                    let sizes = Sizes { input, hidden, projection: None };
                    let weights = Weights::new($recurrence::GATES, sizes, bias)?;
                    Ok($name { recurrence: $recurrence::default(), weights, sizes })
                })
            }

            /// The next state: `[batch, hidden]` of an input `[batch, input]`, or `[hidden]` of `[input]`. Without a state the
            /// initial one is 0.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::", stringify!($name), "};\n",
                "let (cell, x) = (", stringify!($name), "::new(3, 4)?, Tensor::ones((2, 3))?);\n",
                "let first = cell.forward_with(&x, None)?;\n",
                "let second = cell.forward_with(&x, Some(&first))?;\n",
                "assert_eq!(second", $hidden, ".shape(), [2, 4]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Shapes of the input or the state other than those of the cell.
            pub fn forward_with(&self, input: &Tensor, state: Option<&$state>) -> Result<$state> {
                called(stringify!($name), &["input", "state"], || {
                    let state = state.map(State::<$states>::tensors);
                    let (owner, recurrence) = (stringify!($name), &self.recurrence);
                    let next = step(owner, recurrence, &self.weights, self.sizes, input, state)?;
                    Ok(State::from_tensors(next))
                })
            }
        }

        /// The hidden state after one step from a state of 0.
        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                let [hidden, ..] = State::<$states>::tensors(&self.forward_with(input, None)?);
                Ok(hidden)
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                self.weights.visit("", visitor);
            }
        }
    )*};
}

cells! {
    /// One step of an [`Rnn`](super::Rnn): `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, RnnCell}};
    /// assert_eq!(RnnCell::new(3, 4)?.relu().forward(&Tensor::ones((2, 3))?)?.shape(), [2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "RNNCell")]
    RnnCell: Elman, 1, Tensor, "1", "";

    /// One step of a [`Gru`](super::Gru).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{GruCell, Module}};
    /// assert_eq!(GruCell::new(3, 4)?.forward(&Tensor::ones((2, 3))?)?.shape(), [2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "GRUCell")]
    GruCell: GatedUnit, 1, Tensor, "3", "";

    /// One step of an [`Lstm`](super::Lstm).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LstmCell, Module}};
    /// assert_eq!(LstmCell::new(3, 4)?.forward(&Tensor::ones((2, 3))?)?.shape(), [2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LSTMCell")]
    LstmCell: LongShortTerm, 2, LstmState, "4", ".hidden";
}

impl RnnCell {
    /// Uses `relu` instead of `tanh`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, RnnCell}};
    /// let h = RnnCell::new(3, 4)?.relu().forward(&Tensor::ones((2, 3))?)?;
    /// assert!(h.min_all()?.item::<f32>()? >= 0.0);
    /// # Ok(()) }
    /// ```
    pub fn relu(mut self) -> RnnCell {
        self.recurrence.relu = true;
        self
    }
}
