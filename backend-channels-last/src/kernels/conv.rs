//! `conv`, `conv_act`, `conv_input_grad` and `conv_weight_grad` of images.

use keyway_cpu_conv::Operands;
use keyway_cpu_conv::image::Pixel;
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

fn conv<T: Pixel>(call: &Call) -> Result<(), Error> {
    // SAFETY: the operands are this call's.
    unsafe { keyway_cpu_conv::conv(&Operands::<T>::with_bias(call)?) }
}

fn conv_act<T: Pixel>(call: &Call) -> Result<(), Error> {
    // SAFETY: as above.
    unsafe { keyway_cpu_conv::conv(&Operands::<T>::with_activation(call)?) }
}

fn conv_input_grad<T: Pixel>(call: &Call) -> Result<(), Error> {
    // SAFETY: as above.
    unsafe { keyway_cpu_conv::conv_input_grad(&Operands::<T>::of(call)?) }
}

fn conv_weight_grad<T: Pixel>(call: &Call) -> Result<(), Error> {
    // SAFETY: as above.
    unsafe { keyway_cpu_conv::conv_weight_grad(&Operands::<T>::of(call)?) }
}

keyway_sdk::register_kernel! {
    op: "conv", signature: "TTOIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv::<f32>, f16 => conv::<f16>, bf16 => conv::<bf16>,
}
// In benches/RESULTS.md, the table of 28 November 2026 (Zen 5, one thread, f32): channels_last over row-major 6.87/5.60 ms
// (3x3), 4.61/6.19 (1x1), 1.80/2.25 (depthwise) and 8.64/10.7 (7x7 stem), geometric mean 0.88.
keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "channels_last", cost: 0.88 }
keyway_sdk::register_kernel! {
    op: "conv_act", signature: "TTOIIIiOS>T", device: "cpu", layout: "channels_last",
    f32 => conv_act::<f32>, f16 => conv_act::<f16>, bf16 => conv_act::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "conv_input_grad", signature: "TTIIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv_input_grad::<f32>, f16 => conv_input_grad::<f16>, bf16 => conv_input_grad::<bf16>,
}
keyway_sdk::register_kernel! {
    op: "conv_weight_grad", signature: "TTIIIIi>T", device: "cpu", layout: "channels_last",
    f32 => conv_weight_grad::<f32>, f16 => conv_weight_grad::<f16>, bf16 => conv_weight_grad::<bf16>,
}
