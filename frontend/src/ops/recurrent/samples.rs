//! The layers of the sample calls.

use super::checks::Layer;

/// A mode with its widths: of the cell, and of the output if it is projected.
pub(super) type Kind = (&'static str, usize, Option<usize>);

/// The layers of both ops' samples: kind, batch sizes, direction.
pub(super) fn layers() -> Vec<(Kind, &'static [i64], bool)> {
    let mut all = Vec::new();
    for mode in ["lstm", "gru", "rnn_tanh", "rnn_relu"] {
        all.push(((mode, 3, None), &[2, 2, 2][..], false));
        all.push(((mode, 2, None), &[3, 3, 1][..], false));
        all.push(((mode, 2, None), &[3, 2, 2, 1][..], true));
        all.push(((mode, 2, None), &[][..], false));
        all.push(((mode, 1, None), &[1][..], true));
    }
    all.push((("lstm", 3, Some(2)), &[2, 1, 1], false));
    all.push((("lstm", 3, Some(1)), &[3, 2], true));
    all.push((("lstm", 40, None), &[5, 4, 4, 2], false));
    all.push((("gru", 40, None), &[5, 4, 4, 2], true));
    all.push((("rnn_tanh", 130, None), &[3, 2], false));
    all
}

/// The number of gates of a mode.
pub(super) fn gates(mode: &str) -> usize {
    Layer::mode(mode).gates()
}
