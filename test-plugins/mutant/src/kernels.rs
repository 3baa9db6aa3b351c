//! The kernels that this plugin registers: some of the wrapped backend's, and one that it does not have.

use crate::faults::answer;
use crate::site::{Kernel, Site};
use keyway_sdk::{Error, register_kernel};

/// Registers kernels of an op that call the wrapped backend's, for each of the dtypes.
macro_rules! wrap {
    ($op:literal, $signature:literal, [$($dtype:ident),+ $(,)?]) => {
        register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "strided",
            $($dtype => |call| {
                static KERNEL: Kernel = Kernel::new($op, stringify!($dtype));
                answer(call, &KERNEL)
            }),+
        }
    };
}

/// Registers kernels for channels_last.
macro_rules! wrap_images {
    ($op:literal, $signature:literal, [$($dtype:ident),+ $(,)?]) => {
        register_kernel! {
            op: $op, signature: $signature, device: "cpu", layout: "channels_last",
            $($dtype => |call| {
                static KERNEL: Kernel = Kernel::new($op, stringify!($dtype)).of_images();
                answer(call, &KERNEL)
            }),+
        }
    };
}

wrap_images!("tanh", "T>T", [f32, f64]);
wrap_images!("relu", "T>T", [f32]);
wrap_images!("add", "TTs>T", [f32]);
wrap_images!("mul", "TT>T", [f32]);
wrap_images!("exp", "T>T", [f32]);
wrap_images!("sum", "TIb>T", [f32]);
wrap!("fft_c2c", "TISb>T", [c64, c128]);
wrap!("fft_c2r", "TISi>T", [c64, c128]);
wrap!("fft_r2c", "TISb>T", [f32, f64]);
wrap!("cholesky", "Tb>T", [f32, f64]);
wrap!("eigvalsh", "T>T", [f32, f64]);
wrap!("lu_factor", "T>TT", [f32, f64]);
wrap!("qr", "TS>TT", [f32, f64]);
wrap!("cholesky", "Tb>T", [c64, c128]);
wrap!("eig", "T>TT", [f32, f64, c64, c128]);
wrap!("eigh", "T>TT", [c64, c128]);
wrap!("lu_solve", "TTTbb>T", [c64, c128]);
wrap!("qr", "TS>TT", [c64, c128]);
wrap!("svd", "Tb>TTT", [c64, c128]);
wrap!("conj", "T>T", [c64, c128]);
wrap!("exp", "T>T", [c64, c128]);
wrap!("log", "T>T", [c64, c128]);
wrap!("sqrt", "T>T", [c64, c128]);
wrap!("add", "TTs>T", [c64, c128]);
wrap!("mul", "TT>T", [c64, c128]);
wrap!("mm", "TT>T", [c64, c128]);
wrap!("sum", "TIb>T", [c64, c128]);
wrap!("to_dtype", "Td>T", [c64, c128]);
wrap!("expm1", "T>T", [f32, f64, f16, bf16]);
wrap!("elu", "Ts>T", [f32]);
wrap!("log1p", "T>T", [f32, f64, f16, bf16]);
wrap!("logaddexp", "TT>T", [f32]);
wrap!("sinh", "T>T", [f32, f64, f16, bf16]);
wrap!("tanh", "T>T", [f32, f64, f16, bf16]);
wrap!("tanh_backward", "TT>T", [f32, f64, f16, bf16]);
wrap!("asinh", "T>T", [f32, f64, f16, bf16]);
wrap!("atanh", "T>T", [f32, f64, f16, bf16]);
wrap!("erf", "T>T", [f32, f64, f16, bf16]);
wrap!("softplus", "Tss>T", [f32, f64, f16, bf16]);
wrap!("sign", "T>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("hardswish", "T>T", [f32, f64, f16, bf16]);
wrap!("leaky_relu", "Ts>T", [f32, f64, f16, bf16]);
wrap!("square", "T>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
wrap!("std", "TIsb>T", [f32, f64, f16, bf16]);
wrap!("gcd", "TT>T", [i8]);
wrap!("poisson", "Tii>T", [f32, f64]);
wrap!("norm", "TsIb>T", [f32, f64, f16, bf16]);
wrap!("index_add", "TiTTs>T", [f32]);
wrap!("layer_norm", "TIOOs>T", [f32, f64, f16, bf16]);
wrap!("layer_norm_backward", "TTIOs>TTT", [f32, f64, f16, bf16]);
wrap!("gelu", "TS>T", [f32]);
wrap!("gelu_backward", "TTS>T", [f32]);
wrap!("hardswish_backward", "TT>T", [f32, f64, f16, bf16]);
wrap!("softshrink_backward", "TTs>T", [f32, f64, f16, bf16]);
wrap!("softplus_backward", "TTss>T", [f32, f64, f16, bf16]);
wrap!("smooth_l1_loss_backward", "TTTsS>T", [f32, f64, f16, bf16]);
wrap!("glu_backward", "TTi>T", [f32, f64, f16, bf16]);
wrap!("softmax_backward", "TTi>T", [f32, f64, f16, bf16]);
wrap!("log_softmax_backward", "TTi>T", [f32, f64, f16, bf16]);
wrap!("channel_norm_backward", "TTTTObf>TTT", [f32, f64, f16, bf16]);
wrap!("group_norm_backward", "TTiOf>TTT", [f32, f64, f16, bf16]);
wrap!("max_pool", "TIIIIb>TT", [f32, f64, f16, bf16]);
wrap!("add", "TTs>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("sub", "TTs>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
wrap!("mul", "TT>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("div", "TTS>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
wrap!("eq", "TT>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("exp", "T>T", [f32, f64, f16, bf16]);
wrap!("round", "T>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
wrap!("relu", "T>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
wrap!("relu_backward", "TT>T", [f32, f64, f16, bf16]);
wrap!("sigmoid", "T>T", [f32, f64, f16, bf16]);
wrap!("sigmoid_backward", "TT>T", [f32, f64, f16, bf16]);
wrap!("sum", "TIb>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("mean", "TIb>T", [f32, f64, f16, bf16]);
wrap!("var", "TIsb>T", [f32, f64, f16, bf16]);
wrap!("amax", "TIb>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("argmax", "Tib>T", [f32]);
wrap!("adam_rows", "TTTTTffffff>TTT", [f32]);
wrap!("scaled_dot_product_attention", "TTTOfbfb>T", [f32, f64, f16, bf16]);
wrap!("rnn_layer", "TTOTOOIbSb>TTTT", [f32, f64]);
wrap!("ctc_loss", "TTIIib>T", [f32, f64]);
wrap!("softmax", "Ti>T", [f32, f64, f16, bf16]);
wrap!("cat", "Li>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("gather", "TiT>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("sort", "Tibb>TT", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("to_dtype", "Td>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("copy", "TT>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("clone", "TS>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
wrap!("uniform", "Tffii>T", [f32, f64, f16, bf16]);
wrap!("normal", "Tffii>T", [f32, f64, f16, bf16]);
wrap!("bernoulli", "Tfii>T", [f32]);
wrap!("random_int", "Tiiii>T", [i64]);
wrap!("log_softmax", "Ti>T", [f32]);
wrap!("mv", "TT>T", [f32]);
wrap!("dot", "TT>T", [f32]);
wrap!("mse_loss", "TTS>T", [f32, f16]);
wrap!("nll_loss", "TTOiS>T", [f32]);
wrap!("searchsorted", "TTb>T", [f32]);
wrap!("conv_weight_grad", "TTIIIIi>T", [f32]);
wrap!("conv", "TTOIIIi>T", [f32]);
wrap!("conv_act", "TTOIIIiOS>T", [f32]);
wrap!("grid_sample", "TTSSb>T", [f32]);
wrap!("bmm", "TT>T", [f32]);
wrap!("mm", "TT>T", [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]);
// Ops that the wrapped backend serves by their decompositions.
register_kernel! {
    op: "linear", signature: "TTO>T", device: "cpu", layout: "strided",
    f32 => |call| {
        static KERNEL: Kernel = Kernel::new("linear", "f32").own(|site| linear(site, i64::MAX));
        answer(call, &KERNEL)
    },
}
register_kernel! {
    op: "rms_norm", signature: "TIOf>T", device: "cpu", layout: "strided",
    f32 => |call| {
        static KERNEL: Kernel = Kernel::new("rms_norm", "f32").own(|site| rms_norm(site, usize::MAX, usize::MAX));
        answer(call, &KERNEL)
    },
}
// The op is numeric, but its rule accepts bool: a dtype that a backend may register without being required to.
register_kernel! {
    op: "mm", signature: "TT>T", device: "cpu", layout: "strided",
    bool => |call| {
        static KERNEL: Kernel = Kernel::new("mm", "bool").own(mm_of_bools);
        answer(call, &KERNEL)
    },
}

/// `input @ weight^T + bias`, with at most the first `most` products of each sum.
pub fn linear(site: &Site<'_>, most: i64) -> Result<(), Error> {
    let (input, weight, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
    let bias = if site.call.is_none(2)? { None } else { Some(site.input(2)?) };
    let (outputs, columns) = (weight.sizes()[0] as usize, weight.sizes()[1] as usize);
    let used = columns.min(usize::try_from(most).unwrap_or_default());
    // Both matrices are read once: a large case takes 10^9 products.
    let weights: Vec<f64> = (0..outputs * columns).map(|nth| weight.get(nth)).collect();
    for (row, first) in (0..out.len()).step_by(outputs.max(1)).enumerate() {
        let values: Vec<f64> = (0..used).map(|column| input.get(row * columns + column)).collect();
        for output in 0..outputs {
            let bias = bias.as_ref().map_or(0.0, |bias| bias.at(&[output as i64]));
            let products = values.iter().zip(&weights[output * columns..]).map(|(x, w)| x * w);
            out.set(first + output, products.fold(bias, |sum, product| sum + product));
        }
    }
    Ok(())
}

/// At most `rows` rows divided by their root mean square, with at most the first `most` squares.
pub fn rms_norm(site: &Site<'_>, most: usize, rows: usize) -> Result<(), Error> {
    let (input, out) = (site.input(0)?, site.output(0)?);
    let weight = if site.call.is_none(2)? { None } else { Some(site.input(2)?) };
    let eps = if site.call.is_none(3)? { f64::from(f32::EPSILON) } else { site.call.float(3)? };
    let width = site.call.ints(1)?.iter().product::<i64>() as usize;
    for row in 0..(out.len() / width.max(1)).min(rows) {
        let places = row * width..(row + 1) * width;
        let squares: f64 = places.clone().take(most).map(|nth| input.get(nth).powi(2)).sum();
        let scale = (squares / width as f64 + eps).sqrt().recip();
        for nth in places {
            let by = weight.map_or(1.0, |weight| weight.get(nth - row * width));
            out.set(nth, input.get(nth) * scale * by);
        }
    }
    Ok(())
}

/// The product of two matrices of truth values, sums being `or`.
fn mm_of_bools(site: &Site<'_>) -> Result<(), Error> {
    let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
    let (rows, inner, columns) = (a.sizes()[0], a.sizes()[1], b.sizes()[1]);
    for i in 0..rows {
        for j in 0..columns {
            let met = (0..inner).any(|k| a.at(&[i, k]) != 0.0 && b.at(&[k, j]) != 0.0);
            out.set_at(&[i, j], f64::from(u8::from(met)));
        }
    }
    Ok(())
}
