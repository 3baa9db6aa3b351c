//! The modules: layers of one kind of recurrence.

use super::layers::Layers;
use super::options::RecurrentOptions;
use super::packed::PackedSequence;
use super::recurrence::{Elman, GatedUnit, LongShortTerm, LstmState, State};
use super::weights::Sizes;
use crate::error::called;
use crate::nn::{Module, ModuleVisitor};
use crate::rng::Generator;
use crate::{Result, Tensor};

macro_rules! stacks {
    ($($(#[$doc:meta])* $name:ident: $recurrence:ident, $states:literal, $state:ident, $gates:literal, $hidden:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            layers: Layers<$recurrence, $states>,
        }

        impl $name {
            /// One layer of this input width and hidden width.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Module, ", stringify!($name), "};\n",
                "let layer = ", stringify!($name), "::new(3, 4)?;\n",
                "assert_eq!(layer.state_dict()[\"weight_ih_l0\"].shape(), [", $gates, " * 4, 3]);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// A hidden width of 0; sizes whose product overflows.
            pub fn new(input: usize, hidden: usize) -> Result<$name> {
                $name::with_options(input, hidden, RecurrentOptions::default())
            }

            /// Layers with these options.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::nn::{Module, RecurrentOptions, ", stringify!($name), "};\n",
                "let layer = ", stringify!($name), "::with_options(3, 4, RecurrentOptions { bias: false, ..Default::default() })?;\n",
                "assert_eq!(layer.num_parameters(), ", $gates, " * 4 * (3 + 4));\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// No layer, a hidden width of 0, a dropout probability outside 0..=1; sizes whose product overflows.
            pub fn with_options(input: usize, hidden: usize, options: RecurrentOptions) -> Result<$name> {
                let sizes = Sizes { input, hidden, projection: None };
                $name::of(sizes, options)
            }

            fn of(sizes: Sizes, options: RecurrentOptions) -> Result<$name> {
                let owner = stringify!($name);
                called(owner, &["input", "hidden"], || {
                    Ok($name { layers: Layers::new(owner, $recurrence::default(), sizes, options)? })
                })
            }

            /// Draws the dropout masks from this generator instead of the default one.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{nn::{Module, ", stringify!($name), "}, rng::Generator};\n",
                "let layer = ", stringify!($name), "::new(3, 4)?.generator(Generator::new(7));\n",
                "assert_eq!(layer.named_generators()[0].1.state().seed, 7);\n",
                "# Ok(()) }\n```",
            )]
            pub fn generator(mut self, generator: Generator) -> $name {
                self.layers.generator = Some(generator);
                self
            }

            /// The outputs of the last layer at each step, `[length, batch, directions * width]`, and the state after the last
            /// step. Without a state the initial one is 0. The reverse direction ends at the first step.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::", stringify!($name), "};\n",
                "let layer = ", stringify!($name), "::new(3, 4)?;\n",
                "let x = Tensor::ones((5, 2, 3))?;\n",
                "let (output, state) = layer.forward_with(&x, None)?;\n",
                "assert_eq!((output.shape(), state", $hidden, ".shape()), (&[5, 2, 4][..], &[1, 2, 4][..]));\n",
                "// Two calls with the state of the first equal one.\n",
                "let (_, early) = layer.forward_with(&x.narrow(0, 0, 3)?, None)?;\n",
                "let (_, late) = layer.forward_with(&x.narrow(0, 3, 2)?, Some(&early))?;\n",
                "assert!(late", $hidden, ".allclose(&state", $hidden, ")?);\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Shapes of the input or the state other than those of the module.
            pub fn forward_with(&self, input: &Tensor, state: Option<&$state>) -> Result<(Tensor, $state)> {
                called(stringify!($name), &["input", "state"], || {
                    let (output, state) = self.layers.run(input, state.map(State::<$states>::tensors))?;
                    Ok((output, State::from_tensors(state)))
                })
            }

            /// [`Self::forward_with`] for sequences of several lengths. Each sequence has its own last step, and states are in
            /// the order of the sequences.
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "use keyway::{Tensor, nn::{PackedSequence, ", stringify!($name), "}};\n",
                "let layer = ", stringify!($name), "::new(3, 4)?;\n",
                "let packed = PackedSequence::from_padded(&Tensor::ones((5, 2, 3))?, &[2, 5], false)?;\n",
                "let (output, state) = layer.forward_packed(&packed, None)?;\n",
                "assert_eq!((output.data().shape(), state", $hidden, ".shape()), (&[7, 4][..], &[1, 2, 4][..]));\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Shapes of the input or the state other than those of the module.
            pub fn forward_packed(
                &self,
                input: &PackedSequence,
                state: Option<&$state>,
            ) -> Result<(PackedSequence, $state)> {
                called(stringify!($name), &["input", "state"], || {
                    let state = state.map(State::<$states>::tensors);
                    let (output, state) = self.layers.run_packed(input, state)?;
                    Ok((output, State::from_tensors(state)))
                })
            }
        }

        /// The outputs without the state; the initial state is 0.
        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                Ok(self.forward_with(input, None)?.0)
            }

            fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
                self.layers.visit(visitor);
            }
        }
    )*};
}

stacks! {
    /// A recurrent network with `tanh` or `relu` (J. Elman, "Finding structure in time", 1990) over `[length, batch, input]`:
    /// `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`. Initial values and parameter names are PyTorch's.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Rnn}};
    /// assert_eq!(Rnn::new(3, 4)?.relu().forward(&Tensor::ones((5, 2, 3))?)?.shape(), [5, 2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "RNN")]
    Rnn: Elman, 1, Tensor, "1", "";

    /// Gated recurrent units (K. Cho and others, 2014) over `[length, batch, input]`, with the reset gate after the product:
    /// `r = σ(x_r + h_r)`, `z = σ(x_z + h_z)`, `n = tanh(x_n + r * h_n)`, `h' = (1 - z) * n + z * h`, where `x` and `h` are the
    /// products of input and state with their weights, plus the biases. Initial values and parameter names are PyTorch's.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Gru, Module}};
    /// assert_eq!(Gru::new(3, 4)?.forward(&Tensor::ones((5, 2, 3))?)?.shape(), [5, 2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "GRU")]
    Gru: GatedUnit, 1, Tensor, "3", "";

    /// Long short-term memory (S. Hochreiter and J. Schmidhuber, 1997) over `[length, batch, input]`: `i, f, o = σ(..)` and
    /// `g = tanh(..)` of the four parts of `W_ih x + b_ih + W_hh h + b_hh`, `c' = f * c + i * g`, `h' = o * tanh(c')`. Initial
    /// values and parameter names are PyTorch's.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Lstm, Module}};
    /// assert_eq!(Lstm::new(3, 4)?.forward(&Tensor::ones((5, 2, 3))?)?.shape(), [5, 2, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LSTM")]
    Lstm: LongShortTerm, 2, LstmState, "4", ".hidden";
}

impl Rnn {
    /// Uses `relu` instead of `tanh`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Rnn}};
    /// let y = Rnn::new(3, 4)?.relu().forward(&Tensor::ones((5, 2, 3))?)?;
    /// assert!(y.min_all()?.item::<f32>()? >= 0.0);
    /// # Ok(()) }
    /// ```
    pub fn relu(mut self) -> Rnn {
        self.layers.recurrence.relu = true;
        self
    }
}

impl Lstm {
    /// Layers whose hidden state is projected to a smaller width (H. Sak and others, 2014): `h' = W_hr (o * tanh(c'))`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Lstm, RecurrentOptions}};
    /// let lstm = Lstm::with_projection(3, 4, 2, RecurrentOptions::default())?;
    /// let (output, state) = lstm.forward_with(&Tensor::ones((5, 1, 3))?, None)?;
    /// assert_eq!(output.shape(), [5, 1, 2]);
    /// assert_eq!((state.hidden.shape(), state.cell.shape()), (&[1, 1, 2][..], &[1, 1, 4][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Lstm::with_options`]; a projection to width 0, or to the hidden width or a larger one.
    #[doc(alias = "proj_size")]
    pub fn with_projection(
        input: usize,
        hidden: usize,
        projection: usize,
        options: RecurrentOptions,
    ) -> Result<Lstm> {
        Lstm::of(Sizes { input, hidden, projection: Some(projection) }, options)
    }
}
