//! Calls of products, convolutions, pooling, norms of images, attention, searches and row updates at such sizes: few steps
//! for the oracle, each size above the block size of kernels.

use keyway::DType;
use keyway::ops::sample::{Fill, Sample, SampleArg, fixed, index, plain, sample, tensor, uniform};

/// A convolution: image, kernel, and the stride, padding and dilation of all its dimensions.
struct Conv {
    image: &'static [usize],
    kernel: &'static [usize],
    moves: [usize; 3],
    groups: usize,
}

const CONVS: [Conv; 11] = [
    // Rows longer than a block of pixels, and output channels beyond one or two vectors.
    Conv { image: &[1, 7, 6, 70], kernel: &[35, 7, 3, 3], moves: [1, 1, 1], groups: 1 },
    Conv { image: &[2, 21, 9, 11], kernel: &[18, 21, 3, 3], moves: [1, 1, 1], groups: 1 },
    Conv { image: &[1, 70, 5, 6], kernel: &[17, 70, 3, 3], moves: [1, 1, 1], groups: 1 },
    Conv { image: &[2, 33, 9, 11], kernel: &[67, 33, 1, 1], moves: [1, 0, 1], groups: 1 },
    Conv { image: &[1, 9, 13, 15], kernel: &[20, 9, 1, 1], moves: [2, 0, 1], groups: 1 },
    Conv { image: &[1, 3, 30, 31], kernel: &[10, 3, 7, 7], moves: [2, 3, 1], groups: 1 },
    Conv { image: &[1, 4, 12, 70], kernel: &[5, 4, 3, 3], moves: [1, 2, 2], groups: 1 },
    Conv { image: &[1, 37, 9, 10], kernel: &[37, 1, 3, 3], moves: [1, 1, 1], groups: 37 },
    Conv { image: &[1, 24, 7, 8], kernel: &[34, 12, 3, 3], moves: [2, 1, 1], groups: 2 },
    // More depthwise kernel taps than a vector holds.
    Conv { image: &[1, 19, 9, 12], kernel: &[19, 1, 5, 5], moves: [1, 2, 1], groups: 19 },
    Conv { image: &[2, 21, 70], kernel: &[21, 1, 19], moves: [1, 9, 1], groups: 21 },
];

impl Conv {
    fn lists(&self) -> [SampleArg; 4] {
        let [stride, padding, dilation] =
            self.moves.map(|n| SampleArg::Ints(vec![n as i64; self.image.len() - 2]));
        [stride, padding, dilation, SampleArg::Int(self.groups as i64)]
    }

    /// The sizes of the result.
    fn result(&self) -> Vec<usize> {
        let [stride, padding, dilation] = self.moves;
        let positions =
            |d: usize| (self.image[d] + 2 * padding - dilation * (self.kernel[d] - 1) - 1) / stride + 1;
        [self.image[0], self.kernel[0]].into_iter().chain((2..self.image.len()).map(positions)).collect()
    }

    fn call(&self, tensors: [&[usize]; 2], third: SampleArg) -> Sample {
        sample(tensors.map(plain).into_iter().chain([third]).chain(self.lists()))
    }
}

fn spatial(sizes: &[usize]) -> SampleArg {
    SampleArg::Ints(sizes[2..].iter().map(|&size| size as i64).collect())
}

const IMAGE: [usize; 4] = [2, 35, 19, 33];
const POOLED: [usize; 4] = [2, 35, 10, 17];
/// Few channels with many elements.
const PLANES: [usize; 4] = [3, 2, 71, 53];

/// The last arguments of an interpolation.
fn between(mode: &'static str) -> [SampleArg; 3] {
    [SampleArg::Str(mode), SampleArg::Bool(false), SampleArg::Floats(Vec::new())]
}

fn pair(n: i64) -> SampleArg {
    SampleArg::Ints(vec![n, n])
}

/// Rows, reduction lengths and columns that are whole blocks, without a tail: a loop over blocks may omit the last one.
const WHOLE_BLOCKS: [[usize; 3]; 6] =
    [[8, 8, 8], [16, 16, 16], [5, 64, 32], [64, 32, 3], [3, 128, 256], [2, 4104, 3]];

fn products(sizes: &[[usize; 3]], batch: &[usize]) -> Vec<Sample> {
    let of = |sizes: [usize; 2]| plain(&[batch, &sizes].concat());
    sizes.iter().map(|&[rows, inner, columns]| sample([of([rows, inner]), of([inner, columns])])).collect()
}

/// The calls of the op of this name.
pub(in crate::families) fn of(op: &str) -> Vec<Sample> {
    let channels = || plain(&IMAGE[1..2]);
    let window = || [pair(3), pair(2), pair(1)];
    let average =
        || window().into_iter().chain([SampleArg::Bool(false), SampleArg::Bool(true), SampleArg::None]);
    match op {
        "mm" | "matmul" => {
            let odd = [[1, 300, 40], [3, 2100, 67], [33, 20, 300], [130, 70, 35], [300, 9, 301]];
            products(&[&odd[..], &WHOLE_BLOCKS[..]].concat(), &[])
        }
        "bmm" => {
            products(&[[33, 20, 70], [67, 35, 9], [1, 130, 40], [8, 16, 8], [3, 64, 16], [2, 4104, 1]], &[3])
        }
        "mv" => {
            let sizes = [[300, 301], [5, 5003], [5003, 7], [8, 16], [64, 128], [3, 4104]];
            sizes.iter().map(|&[n, k]| sample([plain(&[n, k]), plain(&[k])])).collect()
        }
        "dot" => [1_048_613, 16, 64, 4104].map(|n| sample([(); 2].map(|()| uniform(&[n], 0.0, 2.0)))).into(),
        "linear" => vec![
            sample([plain(&[1, 300]), plain(&[67, 300]), plain(&[67])]),
            sample([plain(&[130, 67]), plain(&[35, 67]), plain(&[35])]),
            sample([plain(&[8, 16]), plain(&[16, 16]), plain(&[16])]),
            sample([plain(&[3, 128]), plain(&[64, 128]), plain(&[64])]),
            sample([plain(&[2, 4104]), plain(&[3, 4104]), plain(&[3])]),
        ],
        "conv" => {
            let bias = |conv: &Conv| plain(&conv.kernel[..1]);
            CONVS.iter().map(|conv| conv.call([conv.image, conv.kernel], bias(conv))).collect()
        }
        "conv_act" => {
            let call = |(i, conv): (usize, &Conv)| {
                let mut call = conv.call([conv.image, conv.kernel], plain(&conv.kernel[..1]));
                let add = if i % 2 == 0 { plain(&conv.result()) } else { SampleArg::None };
                call.args.extend([add, SampleArg::Str(["relu", "relu6", "silu", "hardswish"][i % 4])]);
                call
            };
            CONVS.iter().enumerate().map(call).collect()
        }
        "conv_input_grad" => {
            CONVS.iter().map(|conv| conv.call([&conv.result(), conv.kernel], spatial(conv.image))).collect()
        }
        "conv_weight_grad" => {
            CONVS.iter().map(|conv| conv.call([&conv.result(), conv.image], spatial(conv.kernel))).collect()
        }
        "max_pool" | "max_pool_values" => {
            vec![sample([plain(&IMAGE)].into_iter().chain(window()).chain([pair(1), SampleArg::Bool(false)]))]
        }
        "max_pool_backward" => {
            let positions = (IMAGE[2] * IMAGE[3]) as i64;
            vec![sample([plain(&POOLED), index(&POOLED, positions), spatial(&IMAGE)])]
        }
        "avg_pool" => vec![sample([plain(&IMAGE)].into_iter().chain(average()))],
        "avg_pool_backward" => {
            vec![sample([plain(&POOLED), spatial(&IMAGE)].into_iter().chain(average()))]
        }
        "max_unpool" => {
            let positions = (IMAGE[2] * IMAGE[3]) as i64;
            vec![sample([plain(&POOLED), index(&POOLED, positions), spatial(&IMAGE)])]
        }
        "adaptive_avg_pool" | "adaptive_max_pool" => vec![sample([plain(&IMAGE), spatial(&POOLED)])],
        "adaptive_avg_pool_backward" => vec![sample([plain(&POOLED), spatial(&IMAGE)])],
        "interpolate" => vec![
            sample([plain(&POOLED), spatial(&IMAGE)].into_iter().chain(between("linear"))),
            sample([plain(&IMAGE), spatial(&POOLED)].into_iter().chain(between("cubic"))),
        ],
        "interpolate_backward" => {
            vec![sample([plain(&IMAGE), spatial(&POOLED)].into_iter().chain(between("linear")))]
        }
        "grid_sample" => {
            let call = |mode, padding| {
                let grid = uniform(&[POOLED[0], IMAGE[2], IMAGE[3], 2], -1.2, 1.2);
                let modes = [SampleArg::Str(mode), SampleArg::Str(padding), SampleArg::Bool(false)];
                sample([plain(&POOLED), grid].into_iter().chain(modes))
            };
            vec![call("bilinear", "border"), call("bicubic", "zeros")]
        }
        "grid_sample_input_grad" | "grid_sample_grid_grad" => {
            let call = |mode, padding| {
                let grid = uniform(&[IMAGE[0], POOLED[2], POOLED[3], 2], -1.2, 1.2);
                let modes = [SampleArg::Str(mode), SampleArg::Str(padding), SampleArg::Bool(true)];
                let tensors = match op {
                    "grid_sample_input_grad" => vec![plain(&POOLED), grid, spatial(&IMAGE)],
                    _ => vec![plain(&POOLED), plain(&IMAGE), grid],
                };
                sample(tensors.into_iter().chain(modes))
            };
            vec![call("bilinear", "reflection"), call("bicubic", "zeros")]
        }
        "channel_norm" => [IMAGE, PLANES]
            .map(|sizes| {
                let channels = || plain(&sizes[1..2]);
                let rest = [SampleArg::Bool(false), SampleArg::Float(1e-5)];
                sample([plain(&sizes), channels(), channels()].into_iter().chain(rest))
            })
            .into(),
        "channel_norm_backward" => [IMAGE, PLANES]
            .map(|sizes| {
                let statistics = |low, high| uniform(&[1, sizes[1], 1, 1], low, high);
                let images = [plain(&sizes), plain(&sizes), statistics(-0.5, 0.5), statistics(0.5, 2.0)];
                let rest = [SampleArg::Bool(false), SampleArg::Float(1e-5)];
                sample(images.into_iter().chain([plain(&sizes[1..2])]).chain(rest))
            })
            .into(),
        "channel_sums" => vec![sample([plain(&IMAGE), plain(&IMAGE), channels()])],
        "frozen_norm" => {
            let variances = uniform(&[IMAGE[1]], 0.5, 2.0);
            let tensors = [plain(&IMAGE), channels(), variances, channels(), channels()];
            vec![sample(tensors.into_iter().chain([SampleArg::Float(1e-5)]))]
        }
        "group_norm" => {
            vec![sample([plain(&IMAGE), SampleArg::Int(5), channels(), channels(), SampleArg::Float(1e-5)])]
        }
        "group_norm_backward" => {
            let images = [plain(&IMAGE), plain(&IMAGE), SampleArg::Int(5)];
            vec![sample(images.into_iter().chain([channels(), SampleArg::Float(1e-5)]))]
        }
        "scaled_dot_product_attention" => {
            let rest = [SampleArg::None, SampleArg::Bool(false)];
            let call = |sizes, causal| {
                let flags = [SampleArg::None, SampleArg::Float(0.0), SampleArg::Bool(causal)];
                sample(looks(sizes).into_iter().chain(flags).chain(rest.clone()))
            };
            ATTENTION.map(|(sizes, causal)| call(sizes, causal)).into()
        }
        "flash_attention" => {
            let call = |sizes: [usize; 5], causal| {
                let rest = [SampleArg::None, SampleArg::Bool(causal), SampleArg::Float(scale(sizes))];
                sample(looks(sizes).into_iter().chain(rest))
            };
            ATTENTION.map(|(sizes, causal)| call(sizes, causal)).into()
        }
        "flash_attention_backward" => {
            let call = |sizes: [usize; 5], causal| {
                let [heads, queries, _, _, values] = sizes;
                let [query, key, value] = looks(sizes);
                let made = || plain(&[1, heads, queries, values]);
                // Near the logsumexp of the scores themselves, so that the sum of the weights is not far from 1.
                let sums = uniform(&[1, heads, queries], 4.0, 7.0);
                let rest = [SampleArg::Bool(causal), SampleArg::Float(scale(sizes))];
                let tensors = [made(), query, key, value, SampleArg::None, made(), sums];
                sample(tensors.into_iter().chain(rest))
            };
            ATTENTION.map(|(sizes, causal)| call(sizes, causal)).into()
        }
        "searchsorted" => {
            // Bounds and values between them, both exact in every dtype; some bounds are duplicated.
            let bounds = || Fill::Values((0..70).map(|k| f64::from(k - k % 3)).collect());
            let values = || Fill::Values((0..140).map(|k| f64::from(k * 37 % 140) / 2.0 + 0.5).collect());
            let call = |first: &[usize], second: &[usize], right| {
                sample([tensor(first, bounds()), tensor(second, values()), SampleArg::Bool(right)])
            };
            let calls =
                [false, true].map(|right| [call(&[70], &[3, 140], right), call(&[5, 70], &[5, 140], right)]);
            calls.into_iter().flatten().collect()
        }
        // Indices above 65,536, and more than two million of them.
        "gather" => [300, 2_097_169]
            .map(|n| sample([plain(&[TABLE]), SampleArg::Int(0), index(&[n], TABLE as i64)]))
            .into(),
        "index_select" => [([TABLE, 1], 300), ([3, TABLE], 301)]
            .map(|(sizes, n)| {
                let dim = i64::from(sizes[0] != TABLE);
                sample([plain(&sizes), SampleArg::Int(dim), index(&[n], TABLE as i64)])
            })
            .into(),
        "index_add" => {
            let rest = [index(&[300], TABLE as i64), plain(&[300]), SampleArg::Int(2)];
            vec![sample([plain(&[TABLE]), SampleArg::Int(0)].into_iter().chain(rest))]
        }
        "index_copy" | "scatter" => {
            // Unique indices: with duplicates any of the values may be written.
            let at = Fill::Values((0..300).map(|k| f64::from(k * 233 + 5)).collect());
            vec![sample([plain(&[TABLE]), SampleArg::Int(0), fixed(&[300], DType::I64, at), plain(&[300])])]
        }
        "scatter_add" => {
            let rest = [index(&[300], TABLE as i64), plain(&[300])];
            vec![sample([plain(&[TABLE]), SampleArg::Int(0)].into_iter().chain(rest))]
        }
        "embedding" => {
            vec![sample([plain(&[TABLE, 1]), index(&[7, 43], TABLE as i64), SampleArg::None])]
        }
        "adam_rows" => vec![rows(&[7, 1030], 30), rows(&[5003, 3], 9_000)],
        _ => Vec::new(),
    }
}

/// Rows of a table whose indices do not fit into 16 bits.
const TABLE: usize = 70_003;

/// Heads, queries, keys, head sizes of query and value, and whether attention is causal. Head sizes of 64 and 128 are those
/// of most networks, which have specialised kernels.
const ATTENTION: [([usize; 5], bool); 6] = [
    ([1, 300, 300, 5, 3], true),
    ([2, 1030, 9, 5, 3], false),
    ([2, 5, 1030, 5, 3], false),
    ([2, 150, 131, 64, 64], true),
    ([2, 131, 150, 64, 64], false),
    ([1, 75, 70, 128, 128], true),
];

/// Query, key and value.
fn looks([heads, queries, keys, width, values]: [usize; 5]) -> [SampleArg; 3] {
    [plain(&[1, heads, queries, width]), plain(&[1, heads, keys, width]), plain(&[1, heads, keys, values])]
}

/// The scale of the scores.
fn scale([_, _, _, width, _]: [usize; 5]) -> f64 {
    1.0 / (width as f64).sqrt()
}

/// An optimizer step with sparse gradients on a table of these sizes, most of whose rows have several gradients.
fn rows(sizes: &[usize], gradients: usize) -> Sample {
    let at = Fill::Values((0..gradients).map(|k| (k * k % sizes[0]) as f64).collect());
    let mut grad = sizes.to_vec();
    grad[0] = gradients;
    let tensors = [
        plain(sizes),
        plain(sizes),
        uniform(sizes, 0.5, 2.0),
        fixed(&[gradients], DType::I64, at),
        plain(&grad),
    ];
    sample(tensors.into_iter().chain([0.875, 0.75, 0.125, 0.25, 0.0, 1.0].map(SampleArg::Float)))
}
