//! The options of recurrent layers.

/// The options of [`Rnn`](super::Rnn), [`Gru`](super::Gru) and [`Lstm`](super::Lstm).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Gru, Module, RecurrentOptions}};
/// let options = RecurrentOptions { num_layers: 2, bidirectional: true, batch_first: true, ..Default::default() };
/// let gru = Gru::with_options(3, 4, options)?;
/// assert_eq!(gru.forward(&Tensor::ones((5, 7, 3))?)?.shape(), [5, 7, 8]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentOptions {
    /// Number of layers, 1 by default. A layer has the outputs of the one before as its input.
    pub num_layers: usize,
    /// Whether the products have biases, as by default.
    pub bias: bool,
    /// Whether inputs and outputs are `[batch, length, width]` and not `[length, batch, width]`. States are not concerned.
    pub batch_first: bool,
    /// The dropout probability of the outputs of each layer but the last in training mode, 0 by default.
    pub dropout: f64,
    /// Whether each layer has a second direction, against the order of time. Its outputs follow those of the first direction in
    /// the last dimension.
    pub bidirectional: bool,
}

impl Default for RecurrentOptions {
    fn default() -> RecurrentOptions {
        RecurrentOptions { num_layers: 1, bias: true, batch_first: false, dropout: 0.0, bidirectional: false }
    }
}

impl RecurrentOptions {
    /// The number of directions.
    pub(super) fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }
}
