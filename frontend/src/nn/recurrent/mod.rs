//! Recurrent layers and their cells: `Rnn`, `Gru`, `Lstm`, and batches of sequences of several lengths.
//!
//! Formulas, parameter names and initial values are PyTorch's. The inputs of all steps of a layer are projected in one product;
//! each step then has one product with the hidden state.

mod cells;
mod layers;
mod options;
mod packed;
mod recurrence;
mod stacks;
mod weights;

pub use cells::{GruCell, LstmCell, RnnCell};
pub use options::RecurrentOptions;
pub use packed::{PackedSequence, pad_sequence};
pub use recurrence::LstmState;
pub use stacks::{Gru, Lstm, Rnn};
