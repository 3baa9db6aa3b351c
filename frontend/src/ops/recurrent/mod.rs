//! Recurrent layers.

mod checks;
mod samples;
mod steps;

crate::ops::family! {
    rnn_layer,
    rnn_layer_backward,
}
