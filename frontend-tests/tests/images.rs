//! Images resampled, rearranged and pooled to a size, as programs call them: PyTorch's values, formats, errors.

use keyway::nn::{
    AdaptiveAvgPool2d, AlphaDropout, ChannelShuffle, Dropout1d, Dropout2d, Fold, InterpolateMode,
    InterpolateOptions, LocalResponseNorm, LpPool2d, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, Module,
    PixelShuffle, PixelUnshuffle, Sequential, Unfold, UnfoldOptions, Upsample,
};
use keyway::nn::{GridMode, GridOptions, GridPadding};
use keyway::rng::{self, Generator};
use keyway::{DType, MemoryFormat, Result, Tensor};

/// 1, 2, 3 ..
fn counted(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product();
    Tensor::from_vec((1..=count).map(|i| i as f64).collect(), sizes).unwrap()
}

fn of(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

#[track_caller]
fn assert_near(got: &Tensor, expected: &[f64]) {
    let got = values(got);
    let near = got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near, "{got:?}, not {expected:?}");
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(made: Result<T>, parts: &[&str]) {
    let text = made.expect_err("a refusal").to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

fn resized(x: &Tensor, options: InterpolateOptions, mode: InterpolateMode) -> Result<Tensor> {
    x.interpolate(&options.mode(mode))
}

#[test]
fn adaptive_pooling_has_the_windows_of_pytorch() -> Result<()> {
    let x = counted(&[1, 1, 4, 5]);
    let expected = [4.5, 6.5, 9.5, 11.5, 14.5, 16.5];
    assert_eq!(values(&x.adaptive_avg_pool2d([3, 2])?), expected);
    assert_eq!(values(&x.to(MemoryFormat::ChannelsLast)?.adaptive_avg_pool2d([3, 2])?), expected);
    // The last NaN, the first of equal ones.
    let x = of(&[3., 1., 3., 2., f64::NAN, 0., 5., 5., 4., 1., 5., 2.], &[1, 1, 4, 3]);
    let (largest, places) = x.adaptive_max_pool2d_with_indices([3, 2])?;
    assert_eq!(values(&places), [4., 4., 4., 4., 6., 7.]);
    assert!(values(&largest)[..4].iter().all(|v| v.is_nan()));
    assert_eq!(values(&largest)[4..], [5., 5.]);
    // One size may stay, and an input may have no batch.
    let x = counted(&[2, 3, 4]);
    let kept = x.adaptive_avg_pool2d([None, Some(3)])?;
    assert_eq!(kept.shape(), [2, 3, 3]);
    assert_eq!(values(&kept)[..3], [1.5, 2.5, 3.5]);
    assert_eq!(x.adaptive_max_pool1d(1)?.shape(), [2, 3, 1]);
    assert_eq!(x.unsqueeze(0)?.adaptive_avg_pool3d([1, 2, 3])?.shape(), [1, 1, 2, 3]);
    Ok(())
}

#[test]
fn adaptive_pooling_by_whole_windows_is_plain_pooling_and_its_gradient_too() -> Result<()> {
    let x = counted(&[2, 3, 4, 6]).to(MemoryFormat::ChannelsLast)?.requires_grad_(true)?;
    for (to, share) in [([1, 1], 1.0 / 24.0), ([2, 3], 0.25), ([4, 6], 1.0)] {
        let y = x.adaptive_avg_pool2d(to)?;
        assert_eq!(y.shape()[2..], to);
        y.sum_all()?.backward()?;
        let grad = x.grad().unwrap();
        assert!(values(&grad).iter().all(|g| (g - share).abs() < 1e-12), "{to:?}");
        x.zero_grad();
    }
    assert!(x.adaptive_avg_pool2d([2, 3])?.is_contiguous_in(MemoryFormat::ChannelsLast));
    assert!(x.adaptive_avg_pool2d([3, 4])?.is_contiguous_in(MemoryFormat::ChannelsLast));
    Ok(())
}

#[test]
fn unpooling_puts_elements_where_they_were() -> Result<()> {
    let x = of(&[1., 7., 2., 5., 3., 4., 9., 8., 6.], &[1, 1, 3, 3]);
    let (largest, places) = x.max_pool2d_with_indices(MaxPoolOptions::new(2).stride(1))?;
    let options = MaxUnpoolOptions::new(2).stride(1);
    let back = largest.max_unpool2d(&places, options)?;
    assert_eq!(values(&back), [0., 7., 0., 0., 0., 0., 9., 8., 0.]);
    // If several elements have the same index, the last one is stored, in each format.
    let x = of(&[5., 6., 7.], &[1, 1, 3]);
    let places = Tensor::from_vec(vec![3i64, 1, 3], [1, 1, 3])?;
    assert_eq!(values(&x.max_unpool1d(&places, MaxUnpoolOptions::new(2))?), [0., 6., 0., 7., 0., 0.]);
    let longer = MaxUnpoolOptions::new(2).output_size([7]);
    assert_eq!(x.max_unpool1d(&places, longer)?.shape(), [1, 1, 7]);
    assert_refused(
        x.max_unpool1d(&places, MaxUnpoolOptions::new(2).output_size([8])),
        &["output_size", "6 or less than the stride 2 from it", "8"],
    );
    let outside = Tensor::from_vec(vec![0i64, 1, 6], [1, 1, 3])?;
    assert_refused(x.max_unpool1d(&outside, MaxUnpoolOptions::new(2)), &["indices in 0..6", "6"]);
    assert_refused(x.max_unpool1d(&places.narrow(2, 0, 2)?, MaxUnpoolOptions::new(2)), &["[1, 1, 3]"]);
    Ok(())
}

#[test]
fn images_are_resampled_as_pytorch_does() -> Result<()> {
    use InterpolateMode::{Area, Bicubic, Bilinear, Nearest, NearestExact};
    let x = counted(&[1, 1, 2, 3]);
    let to = || InterpolateOptions::sizes(&[3, 4]);
    let linear = [1.0, 1.625, 2.375, 3.0, 2.5, 3.125, 3.875, 4.5, 4.0, 4.625, 5.375, 6.0];
    assert_near(&resized(&x, to(), Bilinear)?, &linear);
    let third = 1.0 / 3.0;
    let corners: Vec<f64> = (0..3)
        .flat_map(|row| (0..4).map(move |i| 1.0 + 1.5 * f64::from(row) + 2.0 * third * f64::from(i)))
        .collect();
    assert_near(&resized(&x, to().align_corners(true), Bilinear)?, &corners);
    let cubic = [0.904, 1.316, 2.0, 2.684, 3.096, 3.904, 4.316, 5.0, 5.684, 6.096];
    assert_near(&resized(&x, InterpolateOptions::sizes(&[2, 5]), Bicubic)?, &cubic);
    // A factor without integer sizes determines the sampling locations, unless it is recomputed.
    let scaled = [1.0, 1.4375, 2.0625, 2.6875, 2.3125, 2.75, 3.375, 4.0, 4.0, 4.4375, 5.0625, 5.6875];
    assert_near(&resized(&x, InterpolateOptions::scale(1.6), Bilinear)?, &scaled);
    let again = InterpolateOptions::scale(1.6).recompute_scale_factor(true);
    assert_near(&resized(&x, again, Bilinear)?, &linear);
    let sized = resized(&x, to().recompute_scale_factor(true), Bilinear).unwrap_err().to_string();
    assert!(sized.contains("recompute_scale_factor") && sized.contains("`scale`"), "{sized}");
    let x = counted(&[1, 1, 5]);
    let seven = || InterpolateOptions::size(7);
    assert_eq!(values(&resized(&x, seven(), Nearest)?), [1., 1., 2., 3., 3., 4., 5.]);
    assert_eq!(values(&resized(&x, seven(), NearestExact)?), [1., 2., 2., 3., 4., 4., 5.]);
    assert_eq!(values(&resized(&x, InterpolateOptions::size(3), Area)?), [1.5, 3.0, 4.5]);
    Ok(())
}

#[test]
fn the_nearest_element_is_found_without_rounding() -> Result<()> {
    // 41 * 2 / 82 is 1, which a quotient in f32 misses.
    let x = counted(&[1, 1, 2]);
    let y = values(&x.interpolate(&InterpolateOptions::size(82))?);
    assert!(y[..41].iter().all(|&v| v == 1.0) && y[41..].iter().all(|&v| v == 2.0));
    Ok(())
}

#[test]
fn resampling_keeps_the_format_and_gives_the_same_in_both() -> Result<()> {
    let x = counted(&[2, 3, 5, 4]);
    let last = x.to(MemoryFormat::ChannelsLast)?;
    for mode in [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Bicubic] {
        for (to, part) in [([9, 3], 4), ([2, 11], 4), ([9, 3], 2)] {
            let options = InterpolateOptions::sizes(&to).mode(mode);
            let [plain, other] =
                [&x, &last].map(|x| x.narrow(3, 0, part).and_then(|x| x.interpolate(&options)));
            let (plain, other) = (plain?, other?);
            let whole = part == x.shape()[3];
            assert!(plain.is_contiguous() && (!whole || other.is_contiguous_in(MemoryFormat::ChannelsLast)));
            assert_near(&other, &values(&plain));
        }
    }
    let x = x.requires_grad_(true)?;
    let y = x.to(MemoryFormat::ChannelsLast)?;
    resized(&y, InterpolateOptions::size(7), InterpolateMode::Bilinear)?.sum_all()?.backward()?;
    let sum: f64 = values(&x.grad().unwrap()).iter().sum();
    assert!((sum - 2.0 * 3.0 * 49.0).abs() < 1e-9, "{sum}");
    Ok(())
}

#[test]
fn resampling_refuses_what_makes_no_sense() -> Result<()> {
    use InterpolateMode::{Area, Bilinear, Linear, Nearest, Trilinear};
    let x = counted(&[1, 1, 4, 4]);
    assert_refused(resized(&x, InterpolateOptions::size(2), Linear), &["of 3 dimensions for Linear"]);
    assert_refused(resized(&x, InterpolateOptions::size(2), Trilinear), &["of 5 dimensions"]);
    assert_refused(resized(&x, InterpolateOptions::size(0), Nearest), &["1 or more"]);
    assert_refused(resized(&x, InterpolateOptions::sizes(&[2, 2, 2]), Nearest), &["one number, or 2"]);
    assert_refused(resized(&x, InterpolateOptions::scale(-1.0), Bilinear), &["factors above 0"]);
    assert_refused(resized(&x, InterpolateOptions::scale(f64::NAN), Bilinear), &["factors above 0"]);
    assert_refused(
        resized(&x, InterpolateOptions::scale(0.1), Bilinear),
        &["leave 1 element or more of each of [4, 4]"],
    );
    assert_refused(resized(&x, InterpolateOptions::scale(1e300), Bilinear), &[]);
    for mode in [Nearest, Area] {
        assert_refused(resized(&x, InterpolateOptions::size(2).align_corners(true), mode), &["false"]);
    }
    let integers = Tensor::from_vec(vec![1i64, 2], [1, 1, 2])?;
    assert_refused(integers.interpolate(&InterpolateOptions::size(4)), &["float"]);
    Ok(())
}

#[test]
fn a_grid_reads_what_pytorch_reads() -> Result<()> {
    use GridMode::{Bicubic, Bilinear, Nearest};
    use GridPadding::{Border, Reflection, Zeros};
    let x = counted(&[1, 1, 2, 3]);
    let grid = of(&[-1., -1., 0.3, 0.2, 1.2, -0.4], &[1, 1, 3, 2]);
    for (mode, padding, expected) in [
        (Bilinear, Zeros, [0.25, 4.55, 0.66]),
        (Bilinear, Border, [1.0, 4.55, 3.3]),
        (Bilinear, Reflection, [1.0, 4.55, 3.3]),
        (Nearest, Zeros, [1., 5., 0.]),
        (Nearest, Border, [1., 5., 3.]),
        (Nearest, Reflection, [1., 5., 3.]),
        (Bicubic, Zeros, [0.0625, 5.939005, 0.63612]),
        (Bicubic, Border, [0.625, 4.708906, 3.27]),
        (Bicubic, Reflection, [0.25, 4.708906, 3.366]),
    ] {
        let options = GridOptions { mode, padding, align_corners: false };
        assert_near(&x.grid_sample_with(&grid, options)?, &expected);
        // With a graph it is composed of other ops.
        let tracked = x.detach().requires_grad_(true)?;
        assert_near(&tracked.grid_sample_with(&grid, options)?, &expected);
    }
    // A location at the border has no gradient along it.
    let grid = grid.requires_grad_(true)?;
    x.grid_sample_with(&grid, GridOptions { padding: Border, align_corners: true, ..Default::default() })?
        .sum_all()?
        .backward()?;
    assert_near(&grid.grad().unwrap(), &[0., 0., 1., 1.5, 0., 1.5]);
    // The nearest pixel does not depend on the location, whose gradient is 0.
    let grid = of(&[-0.5, 0.1], &[1, 1, 1, 2]).requires_grad_(true)?;
    x.grid_sample_with(&grid, GridOptions { mode: Nearest, ..Default::default() })?.sum_all()?.backward()?;
    assert_eq!(values(&grid.grad().unwrap()), [0., 0.]);
    Ok(())
}

#[test]
fn a_grid_of_no_numbers_reads_zeros_and_the_format_is_kept() -> Result<()> {
    let x = counted(&[1, 2, 3, 3]);
    let grid = of(&[f64::NAN, 0.0, f64::INFINITY, 0.0], &[1, 1, 2, 2]);
    for padding in [GridPadding::Zeros, GridPadding::Border, GridPadding::Reflection] {
        for tracked in [false, true] {
            let x = x.detach().requires_grad_(tracked)?;
            let y = values(&x.grid_sample_with(&grid, GridOptions { padding, ..Default::default() })?);
            assert_eq!((y[0], y[2]), (0.0, 0.0), "{padding:?}");
            assert_eq!(y[1], if padding == GridPadding::Border { 6.0 } else { 0.0 }, "{padding:?}");
        }
    }
    let last = x.to(MemoryFormat::ChannelsLast)?;
    let same = of(&[1., 0., 0., 0., 1., 0.], &[1, 2, 3]).affine_grid([1, 2, 3, 3])?;
    for x in [last.clone(), last.requires_grad_(true)?] {
        let y = x.grid_sample(&same)?;
        assert!(y.is_contiguous_in(MemoryFormat::ChannelsLast));
        assert_near(&y, &values(&counted(&[1, 2, 3, 3])));
    }
    Ok(())
}

#[test]
fn affine_grids_are_those_of_pytorch() -> Result<()> {
    let theta = of(&[1., 0.5, 0.25, 0., 2., -1.], &[1, 2, 3]);
    let size = [1, 1, 2, 3];
    let third = 1.0 / 3.0;
    let edges = [-2. * third, -2., 0., -2., 2. * third, -2., -0.5 * third, 0., 0.5, 0., 3.5 * third, 0.];
    assert_near(&theta.affine_grid(size)?, &edges);
    let centres = [-1.25, -3., -0.25, -3., 0.75, -3., -0.25, 1., 0.75, 1., 1.75, 1.];
    assert_near(&theta.affine_grid_with(size, true)?, &centres);
    assert_refused(theta.affine_grid([2, 1, 2, 3]), &["the batch of 1"]);
    assert_refused(theta.affine_grid([1, 1, 1_i64 << 50, 1]), &[]);
    Ok(())
}

#[test]
fn windows_as_columns_and_back() -> Result<()> {
    let x = counted(&[1, 1, 2, 3]);
    let options = UnfoldOptions::new(2).padding([0, 1]).stride([1, 2]);
    let columns = x.im2col(options)?;
    assert_eq!((columns.shape(), values(&columns)), (&[1, 4, 2][..], vec![0., 2., 1., 3., 0., 5., 4., 6.]));
    assert_eq!(values(&columns.col2im([2, 3], options)?), [1., 2., 3., 4., 5., 6.]);
    // Without a batch too, and from memory in another order.
    let last = counted(&[2, 3, 4, 5]).to(MemoryFormat::ChannelsLast)?;
    let window = UnfoldOptions::new([2, 3]).dilation([2, 1]);
    let columns = last.im2col(window)?;
    assert_eq!(values(&columns), values(&last.contiguous()?.im2col(window)?));
    let one = last.select(0, 1)?.im2col(window)?;
    assert_eq!(one.shape(), [18, 6]);
    assert_eq!(values(&one), values(&columns.select(0, 1)?));
    assert_eq!(values(&one.col2im([4, 5], window)?), values(&columns.col2im([4, 5], window)?.select(0, 1)?));
    // A window of one element gives no view of the image.
    let single = x.im2col(UnfoldOptions::new(1))?;
    assert!(!single.shares_storage(&x));
    assert_refused(x.im2col(UnfoldOptions::new(3)), &["reaches over 3 elements of 2"]);
    assert_refused(columns.col2im([5, 5], window), &["_, n * 6, 9"]);
    Ok(())
}

#[test]
fn padding_of_which_nothing_is_read_takes_no_memory() -> Result<()> {
    // The padded image would be of 16,392 by 16,392, and of the places' elements the image is under the middle one alone.
    let x = counted(&[1, 2, 8, 8]);
    let options = UnfoldOptions::new(3).dilation(8192).padding(8192);
    let columns = x.im2col(options)?;
    assert_eq!(columns.shape(), [1, 18, 64]);
    let of_window = columns.reshape((2, 9, 64))?;
    assert_eq!(values(&of_window.select(1, 4)?), values(&x));
    assert_eq!(values(&of_window.sum(1)?), values(&x));
    assert_eq!(values(&columns.col2im([8, 8], options)?), values(&x));
    Ok(())
}

#[test]
fn sums_of_f16_columns_are_rounded_once() -> Result<()> {
    // 2048 and 1 and 1: in f16 each sum with 1 alone is 2048 again.
    let columns = of(&[0., 0., 2048., 0., 1., 0., 1., 0., 0.], &[1, 3, 3]).to_dtype(DType::F16)?;
    assert_eq!(values(&columns.col2im([1, 5], UnfoldOptions::new([1, 3]))?), [0., 0., 2050., 0., 0.]);
    Ok(())
}

#[test]
fn channels_and_pixels_change_places_in_both_formats() -> Result<()> {
    let x = counted(&[2, 8, 3, 2]);
    let last = x.to(MemoryFormat::ChannelsLast)?;
    let up = x.pixel_shuffle(2)?;
    // Channel 0 at the 4 pixels that come of the first one.
    assert_eq!(values(&up.select(0, 0)?.select(0, 0)?.narrow(0, 0, 2)?.narrow(1, 0, 2)?), [1., 7., 13., 19.]);
    for (plain, other) in [
        (up.clone(), last.pixel_shuffle(2)?),
        (up.pixel_unshuffle(2)?, last.pixel_shuffle(2)?.pixel_unshuffle(2)?),
        (x.channel_shuffle(4)?, last.channel_shuffle(4)?),
    ] {
        assert!(other.is_contiguous_in(MemoryFormat::ChannelsLast) && plain.is_contiguous());
        assert_eq!(values(&plain), values(&other));
    }
    assert_eq!(values(&up.pixel_unshuffle(2)?), values(&x));
    assert_eq!(values(&x.channel_shuffle(2)?.select(0, 0)?.narrow(0, 1, 1)?)[0], 25.0);
    // Integers are only moved.
    let whole = x.to_dtype(DType::I64)?.pixel_shuffle(2)?;
    assert_eq!((whole.dtype(), values(&whole)), (DType::I64, values(&up)));
    Ok(())
}

#[test]
fn responses_and_powers_are_those_of_pytorch() -> Result<()> {
    let x = counted(&[1, 4, 1]);
    assert_near(&x.local_response_norm_with(3, 0.5, 0.75, 1.0)?, &[0.634701, 0.81072, 0.799252, 1.167218]);
    let x = counted(&[1, 1, 5]);
    let over = LpPoolOptions::new(2.0, 2).ceil_mode(true);
    assert_near(&x.lp_pool1d(over)?, &[2.236068, 5.0, 7.071068]);
    // The root of zeros has no gradient; it is defined as 0.
    let zeros = Tensor::zeros_with([1, 1, 4], DType::F64)?.requires_grad_(true)?;
    zeros.lp_pool1d(LpPoolOptions::new(2.0, 2))?.sum_all()?.backward()?;
    assert_eq!(values(&zeros.grad().unwrap()), [0.0; 4]);
    Ok(())
}

#[test]
fn whole_channels_are_dropped() -> Result<()> {
    let x = Tensor::ones([4, 8, 3, 2])?;
    let seeded = |run: &dyn Fn() -> Result<Tensor>| rng::with_generator(&Generator::new(3), run);
    let y = seeded(&|| x.dropout2d(0.25, true))?;
    let channels: Vec<Vec<f64>> = values(&y).chunks(6).map(<[f64]>::to_vec).collect();
    assert!(channels.iter().all(|c| c.iter().all(|v| *v == c[0])));
    let dropped = channels.iter().filter(|c| c[0] == 0.0).count();
    assert!((2..16).contains(&dropped), "{dropped} of 32");
    assert!(channels.iter().all(|c| c[0] == 0.0 || (c[0] - 4.0 / 3.0).abs() < 1e-6));
    // Format, dtype and offsets in the random stream are preserved.
    let last = x.to(MemoryFormat::ChannelsLast)?.to_dtype(DType::BF16)?;
    let z = seeded(&|| last.dropout2d(0.25, true))?;
    assert!(z.is_contiguous_in(MemoryFormat::ChannelsLast) && z.dtype() == DType::BF16);
    assert!(values(&z).iter().zip(values(&y)).all(|(a, b)| (*a == 0.0) == (b == 0.0)));
    // `[channels, length]` has no batch; `[batch, channels, length]` does for both.
    let rows = Tensor::ones([64, 5])?.dropout1d(0.5, true)?;
    assert!(values(&rows).chunks(5).all(|row| row.iter().all(|v| *v == row[0])));
    assert!(values(&rows).contains(&0.0) && values(&rows).contains(&2.0));
    assert_refused(x.dropout1d(0.5, true), &["[batch, channels, length]"]);
    assert_refused(x.dropout3d(1.5, true), &["from 0 to 1"]);
    assert_refused(rows.dropout2d(0.5, false), &["of 4 dimensions"]);
    assert_eq!(values(&x.dropout2d(1.0, true)?), vec![0.0; x.elem_count()]);
    Ok(())
}

#[test]
fn alpha_dropout_keeps_mean_and_variance() -> Result<()> {
    let draw = |sizes: &[usize]| {
        rng::with_generator(&Generator::new(1), || Tensor::empty_with(sizes, DType::F64)?.normal_(0.0, 1.0))
    };
    let x = draw(&[200_000])?;
    for p in [0.1, 0.5] {
        let y = rng::with_generator(&Generator::new(2), || x.alpha_dropout(p, true))?;
        let (mean, var) = (y.mean_all()?.item::<f64>()?, y.var_all()?.item::<f64>()?);
        assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.02, "{p}: {mean} and {var}");
    }
    // One value for each dropped channel, PyTorch's.
    let y = rng::with_generator(&Generator::new(2), || draw(&[3, 40, 4])?.feature_alpha_dropout(0.5, true))?;
    let floor = -0.779_193_93;
    let dropped = values(&y).chunks(4).filter(|c| c.iter().all(|v| (v - floor).abs() < 1e-6)).count();
    assert!((30..90).contains(&dropped), "{dropped} of 120");
    assert_eq!(values(&x.alpha_dropout(0.5, false)?), values(&x));
    assert_refused(x.feature_alpha_dropout(0.5, true), &["[batch, channels, ..]"]);
    Ok(())
}

#[test]
fn modules_of_images_have_no_parameters_and_follow_the_mode() -> Result<()> {
    let net = Sequential::new()
        .push(PixelUnshuffle(2))
        .push(ChannelShuffle(4))
        .push(LocalResponseNorm::new(3))
        .push(Dropout2d::new(0.5)?)
        .push(AlphaDropout::new(0.5)?)
        .push(Upsample(InterpolateOptions::scale(2.0).mode(InterpolateMode::Bicubic)))
        .push(LpPool2d::new(2.0, 2))
        .push(PixelShuffle(2))
        .push(AdaptiveAvgPool2d::new([Some(3), None]));
    let x = counted(&[2, 4, 8, 8]).div(100.0)?;
    net.eval();
    assert_eq!(values(&net.forward(&x)?), values(&net.forward(&x)?));
    assert_eq!(net.forward(&x)?.shape(), [2, 4, 3, 8]);
    assert_eq!(net.num_parameters(), 0);
    net.train();
    assert_ne!(values(&net.forward(&x)?), values(&net.forward(&x)?));
    let columns = Unfold(UnfoldOptions::new(2).stride(2)).forward(&x)?;
    let fold = Fold { output_size: 8.into(), options: UnfoldOptions::new(2).stride(2) };
    assert_eq!(values(&fold.forward(&columns)?), values(&x));
    assert_refused(Dropout1d::new(-0.1), &["Dropout1d", "within 0..=1"]);
    Ok(())
}

/// A gradient beside which each of those that follow is lost in f32: of the places that read a pixel no more than a block of 1,024
/// is, and a group of pixels.
#[test]
fn the_gradient_of_a_pixel_that_many_places_read() -> Result<()> {
    const PLACES: usize = 5000;
    let large = 2f32.powi(24);
    for channels in [1, 3, 8, 40] {
        let x = Tensor::zeros([1, channels, 2, 2])?.requires_grad_(true)?;
        // The corner is the centre of pixel 0.
        let grid = Tensor::full([1, 1, PLACES, 2], -1.0)?;
        let y = x.grid_sample_with(&grid, GridOptions { align_corners: true, ..Default::default() })?;
        let number = |i: usize| if i.is_multiple_of(PLACES) { large } else { 1.0 };
        let weights = Tensor::from_vec((0..channels * PLACES).map(number).collect(), y.shape())?;
        y.mul(&weights)?.sum_all()?.backward()?;
        for pixels in values(&x.grad().unwrap()).chunks(4) {
            let off = f64::from(large) + (PLACES - 1) as f64 - pixels[0];
            assert!(
                off.abs() <= 1200.0 && pixels[1..] == [0.0; 3],
                "{channels} channels: {pixels:?}, off by {off}"
            );
        }
    }
    Ok(())
}
