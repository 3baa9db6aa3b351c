//! The kernels, one file for each op.

/// Registers kernels with [`keyway_sdk::register_kernel`].
#[cfg(not(test))]
macro_rules! register {
    ($($kernels:tt)+) => { keyway_sdk::register_kernel! { $($kernels)+ } };
}
/// The variant for unit tests, which call kernels directly: it registers nothing, so that two thousand kernels are
/// type-checked but not compiled a second time.
#[cfg(test)]
macro_rules! register {
    (
        op: $op:literal, signature: $signature:literal, device: "cpu", layout: "strided", flags: allocates,
        $($dtype:ident => $run:expr),+ $(,)?
    ) => {
        const _: &[fn(&keyway_sdk::author::Call<'_>) -> Result<(), keyway_sdk::author::Error>] = &[$($run),+];
    };
    (
        op: $op:literal, signature: $signature:literal, device: "cpu", layout: "strided",
        $($dtype:ident => $run:expr),+ $(,)?
    ) => {
        $crate::kernels::register! {
            op: $op, signature: $signature, device: "cpu", layout: "strided", flags: allocates,
            $($dtype => $run),+
        }
    };
}
pub(crate) use register;

/// Registers a generic kernel of a strided op for each of the element types.
macro_rules! kernel {
    ($op:literal, $signature:literal, $run:ident, [$($dtype:ident),+ $(,)?]) => {
        $crate::kernels::register! {
            op: $op, signature: $signature, device: "cpu", layout: "strided",
            $($dtype => $run::<$dtype>),+
        }
    };
}
pub(crate) use kernel;

mod accumulate;
mod bf16_panels;
mod cells;
mod complex_products;
mod dims;
mod direct;
mod gemm;
mod gemv;
mod indexed;
mod indices;
mod integers;
mod lists;
mod long_sums;
mod moments;
mod nan_to_num;
mod neighbours;
mod nest;
mod number;
mod order;
mod panels;
mod product;
mod quotient;
mod radix;
mod reduction;
mod skinny;
mod tiles;
mod widen;

mod activations;
mod adam_rows;
mod adam_step;
mod add;
mod addcdiv;
mod addcmul;
mod addmm;
mod amax;
mod any;
mod arange;
mod argmax;
mod arithmetic;
mod atan2;
mod attention;
mod baddbmm;
mod bitwise_and;
mod bitwise_or;
mod bitwise_shift;
mod bitwise_xor;
mod bmm;
mod buffer;
mod cat;
mod channel_norm;
mod clamp;
mod complex_functions;
mod constant_pad;
mod conv;
mod copy;
mod cross;
mod ctc_loss;
mod cummax;
mod cumsum;
mod div;
mod embedding_bag;
mod eq;
mod exponential;
mod fill;
mod flip;
mod fmod;
mod gamma;
mod gather;
mod gcd;
mod ge;
mod glu;
mod gt;
mod hypot;
mod index;
mod index_put;
mod index_select;
mod layer_norm;
mod le;
mod lerp;
mod logaddexp;
mod logcumsumexp;
mod logical;
mod logsumexp;
mod losses;
mod lt;
mod masked_fill;
mod masked_scatter;
mod maximum;
mod mean;
mod minimum;
mod mm;
mod mul;
mod multinomial;
mod mv;
mod nansum;
mod ne;
mod nll_loss;
mod nonzero;
mod norm;
mod one_hot;
mod pad;
mod pool;
mod pow;
mod predicates;
mod prelu;
mod prod;
mod random;
mod remainder;
mod repeat;
mod resample;
mod rms_norm;
mod rnn_layer;
mod roll;
mod rounding;
mod running;
mod scatter;
mod scatter_add;
mod scatter_panels;
mod scatter_reduce;
mod searchsorted;
mod sgd_step;
mod shuffle;
mod softmax;
mod softmax_backward;
mod sort;
mod sub;
mod sum;
mod triangle;
mod trigonometric;
mod unique;
mod var;
mod where_;
