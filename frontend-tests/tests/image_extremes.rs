//! Images with extreme arguments: strides, borders, dilations and windows far larger than the image, images far larger than
//! memory, and elements of which squares, or products with zeros, are no numbers. Each call answers as it would by hand or
//! refuses with an error, in both memory formats.

mod rehearsal_support;

use keyway::nn::{
    AvgPoolOptions, InterpolateMode, InterpolateOptions, LpPoolOptions, MaxPoolOptions, UnfoldOptions,
};
use keyway::ops::by_name::call;
use keyway::{Arg, DType, MemoryFormat, Result, Tensor};
use rehearsal_support::{assert_close, load, message};

const IMAGES: &str = "keyway_backend_channels_last";
/// The largest number that says how a window moves.
const MOST: i64 = 1 << 40;
/// A size that no memory has.
const HUGE: usize = 1 << 40;

fn ones(sizes: &[usize]) -> Result<Tensor> {
    Tensor::ones(sizes)
}

/// -0.5 to 0.5 without order, the same each time.
fn numbers(sizes: &[usize]) -> Tensor {
    let number = |i: usize| ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1 << 24) as f32;
    Tensor::from_vec((0..sizes.iter().product()).map(|i| number(i) - 0.5).collect(), sizes).unwrap()
}

fn last(t: &Tensor) -> Result<Tensor> {
    t.to(MemoryFormat::ChannelsLast)
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

/// The one result of an op with these two tensors, lists and number of groups.
fn run(op: &str, [a, b]: [&Tensor; 2], lists: [&[i64]; 4], groups: i64) -> Result<Tensor> {
    let lists = lists.map(Arg::Ints);
    let args: Vec<Arg<'_>> =
        [a.into(), b.into()].into_iter().chain(lists).chain([Arg::Int(groups)]).collect();
    Ok(call(op, &args)?.remove(0))
}

/// `conv` without a bias, with these strides, borders and dilations.
fn conv([x, w]: [&Tensor; 2], moves: [[i64; 2]; 3], groups: i64) -> Result<Tensor> {
    let [stride, padding, dilation] = moves.each_ref().map(|list| Arg::Ints(list));
    let args = [x.into(), w.into(), Arg::None, stride, padding, dilation, Arg::Int(groups)];
    Ok(call("conv", &args)?.remove(0))
}

/// Fails unless the convolution and both gradients of `x` in channels_last are those of `x` row-major.
#[track_caller]
fn same_in_both_formats([x, w]: [&Tensor; 2], moves: [[i64; 2]; 3], groups: i64) -> Result<()> {
    let [plain, w] = [x, w].map(|t| t.copy().unwrap().requires_grad_(true).unwrap());
    let images = last(x)?.requires_grad_(true)?;
    let weight = w.detach().copy()?.requires_grad_(true)?;
    let (expected, got) = (conv([&plain, &w], moves, groups)?, conv([&images, &weight], moves, groups)?);
    assert_close(&values(&got), &values(&expected), 1e-5);
    let factors = numbers(expected.shape());
    expected.mul(&factors)?.sum_all()?.backward()?;
    got.mul(&last(&factors)?)?.sum_all()?.backward()?;
    for (expected, got) in [(&plain, &images), (&w, &weight)] {
        assert_close(&values(&got.grad().unwrap()), &values(&expected.grad().unwrap()), 1e-5);
    }
    Ok(())
}

#[test]
fn numbers_that_no_memory_could_hold_are_refused() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let (x, w) = (ones(&[1, 8, 4, 4])?, ones(&[8, 8, 1, 1])?);
    for beyond in [MOST + 1, 1 << 60, i64::MAX] {
        for i in 0..3 {
            let mut moves = [[1, 1], [0, 0], [1, 1]];
            moves[i][1] = beyond;
            let least = if i == 1 { 0 } else { 1 };
            let expected = format!("2 numbers of {least} or more and at most {MOST}");
            for x in [&x, &last(&x)?] {
                let text = message(conv([x, &w], moves, 1));
                assert!(text.contains(&expected) && text.contains(&beyond.to_string()), "{text}");
            }
        }
        let text = message(x.avg_pool2d(AvgPoolOptions::new(2).stride(beyond as usize)));
        assert!(text.contains("at most 1099511627776"), "{text}");
        let options = UnfoldOptions::new(1).padding(beyond as usize).stride(beyond as usize);
        let text = message(ones(&[1, 1, 9])?.col2im(4, options));
        assert!(text.contains("at most 1099511627776"), "{text}");
    }
    Ok(())
}

#[test]
fn a_stride_and_a_border_beyond_the_image_leave_the_place_in_its_middle() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let moves = [[MOST; 2], [MOST; 2], [1, 1]];
    let expected = [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0];
    for x in [ones(&[1, 2, 4, 4])?, last(&ones(&[1, 2, 4, 4])?)?] {
        let y = conv([&x, &ones(&[1, 2, 1, 1])?], moves, 1)?;
        assert_eq!(values(&y), expected);
    }
    for (groups, channels) in [(1, 8), (8, 1)] {
        let (x, w) = (numbers(&[1, 8, 4, 4]), numbers(&[8, channels, 2, 2]));
        same_in_both_formats([&x, &w], [[MOST; 2], [0, 0], [1, 1]], groups)?;
        same_in_both_formats([&x, &w], [[MOST; 2], [MOST; 2], [1, 1]], groups)?;
    }
    Ok(())
}

#[test]
fn taps_far_apart_take_no_memory_for_what_lies_between() -> Result<()> {
    let _guard = load(&[IMAGES]);
    for (groups, channels) in [(1, 8), (8, 1)] {
        for dtype in [DType::F32, DType::BF16] {
            let x = numbers(&[1, 8, 8, 8]).to_dtype(dtype)?;
            let w = numbers(&[8, channels, 3, 3]).to_dtype(dtype)?;
            // Only the middle tap meets the image.
            for far in [100_000, 1 << 31, MOST] {
                let y = |x: &Tensor| conv([x, &w], [[1, 1], [far; 2], [far; 2]], groups);
                let middle = w.narrow(2, 1, 1)?.narrow(3, 1, 1)?.contiguous()?;
                let expected = conv([&x, &middle], [[1, 1], [0, 0], [1, 1]], groups)?;
                let tolerance = if dtype == DType::F32 { 1e-6 } else { 1e-2 };
                assert_close(&values(&y(&x)?), &values(&expected), tolerance);
                assert_close(&values(&y(&last(&x)?)?), &values(&expected), tolerance);
            }
        }
        let (x, w) = (numbers(&[1, 8, 8, 8]), numbers(&[8, channels, 3, 3]));
        same_in_both_formats([&x, &w], [[1, 1], [20_000; 2], [20_000; 2]], groups)?;
        same_in_both_formats([&x, &w], [[2, 3], [MOST; 2], [MOST; 2]], groups)?;
    }
    Ok(())
}

#[test]
fn a_gradient_is_refused_before_any_of_it_is_written() -> Result<()> {
    let _guard = load(&[IMAGES]);
    // For one remainder of the strides the product is served by another backend than that of images, for another there is
    // none.
    let (grad, w) = (numbers(&[1, 4, 3, 3]), numbers(&[4, 2, 1, 1]));
    let lists: [&[i64]; 4] = [&[3, 3], &[2, 2], &[1, 1], &[1, 1]];
    let expected = run("conv_input_grad", [&grad, &w], lists, 2)?;
    let got = run("conv_input_grad", [&last(&grad)?, &w], lists, 2)?;
    assert_close(&values(&got), &values(&expected), 1e-6);
    let (x, w) =
        (numbers(&[1, 8, 10, 10]).to_dtype(DType::BF16)?, numbers(&[8, 8, 3, 3]).to_dtype(DType::BF16)?);
    let moves: [&[i64]; 4] = [&[10, 10], &[2, 2], &[201, 201], &[201, 201]];
    let grad = conv([&x, &w], [[2, 2], [201, 201], [201, 201]], 1)?;
    let expected = run("conv_input_grad", [&grad, &w], moves, 1)?;
    let got = run("conv_input_grad", [&last(&grad)?, &w], moves, 1)?;
    assert_close(&values(&got), &values(&expected), 1e-2);
    Ok(())
}

#[test]
fn a_window_steps_over_the_image_at_once() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [1, 1, 4])?;
    let max = |x: &Tensor, stride: usize| x.max_pool1d(MaxPoolOptions::new(2).stride(stride));
    for stride in [8, 1 << 20, HUGE] {
        assert_eq!(values(&max(&x, stride)?), [2.0]);
        let leaf = x.copy()?.requires_grad_(true)?;
        leaf.avg_pool1d(AvgPoolOptions::new(2).stride(stride))?.sum_all()?.backward()?;
        assert_eq!(values(&leaf.grad().unwrap()), [0.5, 0.5, 0.0, 0.0]);
        // A window whose border is far larger than the image.
        let options = AvgPoolOptions::new(stride).stride(stride).padding(stride / 2);
        let mean = values(&x.avg_pool1d(options)?)[0];
        assert_close(&[mean * stride as f64], &[10.0], 1e-6);
        let leaf = x.copy()?.requires_grad_(true)?;
        leaf.avg_pool1d(options.count_include_pad(false))?.sum_all()?.backward()?;
        assert_eq!(values(&leaf.grad().unwrap()), [0.25; 4]);
        let (largest, place) =
            x.max_pool1d_with_indices(MaxPoolOptions::new(stride).stride(stride).padding(stride / 2))?;
        assert_eq!((values(&largest), values(&place)), (vec![4.0], vec![3.0]));
    }
    let wide = MaxPoolOptions::new(HUGE).stride(HUGE - 2).padding(HUGE / 2 - 1).ceil_mode(true);
    assert_eq!(values(&x.max_pool1d(wide)?), [4.0]);
    // As images with contiguous channels.
    let images = last(&ones(&[1, 8, 4, 4])?)?.requires_grad_(true)?;
    let y = images.avg_pool2d(AvgPoolOptions::new(2).stride(HUGE))?;
    assert_eq!(values(&y), [1.0; 8]);
    y.sum_all()?.backward()?;
    assert_eq!(images.grad().unwrap().sum_all()?.item::<f32>()?, 8.0);
    Ok(())
}

#[test]
fn a_power_mean_counts_windows_of_any_size() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let lists: [&[i64]; 3] = [&[MOST, MOST], &[MOST, MOST], &[MOST / 2, MOST / 2]];
    let x = ones(&[1, 1, 4, 4])?;
    let args: Vec<Arg<'_>> = [(&x).into(), Arg::Float(2.0)]
        .into_iter()
        .chain(lists.map(Arg::Ints))
        .chain([Arg::Bool(false)])
        .collect();
    assert_close(&values(&call("lp_pool", &args)?[0]), &[4.0], 1e-4);
    assert_eq!(values(&x.lp_pool2d(LpPoolOptions::new(2.0, 4))?), [4.0]);
    Ok(())
}

#[test]
fn windows_of_tensors_without_elements_take_no_memory() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let none = ones(&[0, 1, 1])?.expand([0, 1, HUGE])?;
    assert_eq!(none.avg_pool1d(AvgPoolOptions::new(1))?.shape(), [0, 1, HUGE]);
    assert_eq!(none.max_pool1d(MaxPoolOptions::new(1))?.shape(), [0, 1, HUGE]);
    assert_eq!(none.adaptive_avg_pool1d(HUGE)?.shape(), [0, 1, HUGE]);
    let half = InterpolateOptions::sizes(&[HUGE / 2]);
    assert_eq!(none.interpolate(&half)?.shape(), [0, 1, HUGE / 2]);
    // Kernels of no channels or rows.
    let (grad, x) = (ones(&[1, 0, 2])?, ones(&[1, 1, 1])?);
    let half: &[i64] = &[MOST / 2];
    let made = run("conv_weight_grad", [&grad, &x], [&[MOST], &[1], half, &[1]], 1)?;
    assert_eq!(made.shape(), [0, 1, HUGE]);
    let w = ones(&[0, 1, 1])?.expand([0, 1, HUGE])?;
    let made = run("conv_input_grad", [&grad, &w], [&[1], &[1], half, &[1]], 1)?;
    assert_eq!(values(&made), [0.0]);
    let columns = ones(&[1, 0, 4])?;
    let options = UnfoldOptions::new(1 << 20).padding((1 << 19) - 1).stride(1);
    assert_eq!(values(&columns.col2im(3, options)?), [0.0f64; 0]);
    Ok(())
}

#[test]
fn an_image_that_is_one_element_many_times_is_resampled() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let x = ones(&[1, 1, 1])?.expand([1, 1, HUGE])?;
    for mode in [InterpolateMode::Nearest, InterpolateMode::NearestExact, InterpolateMode::Linear] {
        let y = x.interpolate(&InterpolateOptions::sizes(&[2]).mode(mode))?;
        assert_eq!(values(&y), [1.0, 1.0]);
    }
    // As a row that is mostly skipped.
    let x = numbers(&[1, 2, 3, 4096]);
    let y = x.interpolate(&InterpolateOptions::sizes(&[3, 4]).mode(InterpolateMode::Bilinear))?;
    let between = |i: usize| {
        let [row, column] = [i / 4, i % 4];
        let at = row * 4096 + column * 1024 + 511;
        (values(&x)[at] + values(&x)[at + 1]) / 2.0
    };
    assert_close(&values(&y), &(0..24).map(between).collect::<Vec<_>>(), 1e-6);
    Ok(())
}

#[test]
fn cubic_weights_are_numbers_however_small_the_scale() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let x = ones(&[1, 1, 4, 4])?;
    for mode in ["linear", "cubic"] {
        let (sizes, scales) = (Arg::Ints(&[2, 2]), Arg::Floats(&[1e-310, 1.0]));
        let made = call("interpolate", &[(&x).into(), sizes, Arg::Str(mode), Arg::Bool(false), scales])?;
        assert_close(&values(&made[0]), &[1.0; 4], 1e-6);
    }
    Ok(())
}

#[test]
fn an_infinite_mean_moves_all_to_the_other_end() -> Result<()> {
    let _guard = load(&[IMAGES]);
    let x = numbers(&[2, 8, 4, 8]);
    let mean = Tensor::from_vec(vec![f32::INFINITY; 8], [8])?;
    let var = ones(&[8])?;
    for x in [x.clone(), last(&x)?] {
        let y = x.batch_norm(Some((&mean, &var)), None, None, false, 0.1, 1e-5)?;
        assert!(values(&y).iter().all(|v| *v == f64::NEG_INFINITY), "{:?}", values(&y));
    }
    Ok(())
}

#[test]
fn squares_beyond_the_dtype_are_variances_that_it_holds() -> Result<()> {
    let _guard = load(&[IMAGES]);
    for size in [1e19f32, 1e18, -3e18] {
        let sign = |i: usize| if i.is_multiple_of(2) { size } else { -size };
        let x = Tensor::from_vec((0..2 * 8 * 4 * 8).map(sign).collect(), [2, 8, 4, 8])?;
        let expected: Vec<f64> = (0..512).map(|i| f64::from(sign(i)).signum()).collect();
        for x in [x.clone(), last(&x)?] {
            assert_close(&values(&x.group_norm(2, None, None)?), &expected, 1e-5);
            assert_close(&values(&x.batch_norm(None, None, None, true, 0.1, 1e-5)?), &expected, 1e-5);
            let made = call(
                "channel_norm",
                &[(&x).into(), Arg::None, Arg::None, Arg::Bool(false), Arg::Float(1e-5)],
            )?;
            assert_close(&values(&made[0]), &expected, 1e-5);
            let square = f64::from(size) * f64::from(size);
            assert_close(&values(&made[2]), &[square; 8], 1e-5);
        }
    }
    // If the variance itself overflows, the result is NaN, or 0.
    let sign = |i: usize| if i.is_multiple_of(2) { 3e19f32 } else { -3e19 };
    let x = Tensor::from_vec((0..512).map(sign).collect(), [2, 8, 4, 8])?;
    for x in [x.clone(), last(&x)?] {
        let y = values(&x.group_norm(2, None, None)?);
        assert!(y.iter().all(|v| v.abs() <= 1.0 + 1e-5), "{y:?}");
    }
    Ok(())
}

#[test]
fn an_infinite_pixel_reaches_the_taps_that_read_it_alone() -> Result<()> {
    let _guard = load(&[IMAGES]);
    for (number, channels, dtype) in [
        (f32::INFINITY, 40, DType::BF16),
        (f32::NAN, 40, DType::BF16),
        (f32::INFINITY, 40, DType::F32),
        (f32::INFINITY, 3, DType::BF16),
    ] {
        let at = |i: usize| if i == 4 { number } else { 1.0 };
        let x = Tensor::from_vec((0..channels * 16).map(at).collect(), [1, channels, 4, 4])?;
        let x = last(&x.to_dtype(dtype)?)?;
        let grad = last(&ones(&[1, 8, 2, 2])?.to_dtype(dtype)?)?;
        let made = run("conv_weight_grad", [&grad, &x], [&[3, 3], &[1, 1], &[0, 0], &[1, 1]], 1)?;
        let plain = [x, grad].map(|t| t.contiguous().unwrap());
        let expected =
            run("conv_weight_grad", [&plain[1], &plain[0]], [&[3, 3], &[1, 1], &[0, 0], &[1, 1]], 1)?;
        let text = |t: &Tensor| format!("{:?}", values(t));
        assert_eq!(text(&made), text(&expected), "{number} among {channels} channels of {dtype}");
    }
    Ok(())
}

#[test]
fn groups_narrower_than_a_tile_have_gradients_of_their_own() -> Result<()> {
    let _guard = load(&[IMAGES]);
    for (channels, groups) in [(32, 2), (32, 4), (64, 2), (48, 3), (24, 12), (64, 16), (32, 16)] {
        let [x, grad] = [0, 1].map(|_| numbers(&[1, channels, 8, 8]).to_dtype(DType::BF16).unwrap());
        let lists: [&[i64]; 4] = [&[3, 3], &[1, 1], &[1, 1], &[1, 1]];
        let expected = run("conv_weight_grad", [&grad, &x], lists, groups)?;
        let made = run("conv_weight_grad", [&last(&grad)?, &last(&x)?], lists, groups)?;
        assert_close(&values(&made), &values(&expected), 2e-2);
    }
    Ok(())
}
