//! Convolutions and pooling as programs call them: PyTorch's values, formats, names and initial values, and errors.

use keyway::MemoryFormat;
use keyway::nn::{
    Activation, AvgPool2d, AvgPoolOptions, BatchNorm2d, Conv1d, Conv2d, Conv3d, ConvOptions, ConvTranspose2d,
    ConvTransposeOptions, MaxPool2d, MaxPoolOptions, Module, Padding, Relu, Sequential,
};
use keyway::{Result, Tensor};

/// 1, 2, 3 ..
fn counted(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product();
    Tensor::from_vec((1..=count).map(|i| i as f64).collect(), sizes).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

fn is_channels_last(t: &Tensor) -> bool {
    t.shape().len() == 4 && t.strides()[1] == 1 && t.strides()[3] == t.shape()[1]
}

#[test]
fn a_format_is_kept_in_the_strides_where_elements_lie_in_both() -> Result<()> {
    let gray = counted(&[2, 1, 3, 4]);
    let last = gray.to(MemoryFormat::ChannelsLast)?;
    assert!(last.shares_storage(&gray) && last.strides() == [12, 1, 4, 1], "{:?}", last.strides());
    assert!(
        last.is_contiguous_in(MemoryFormat::ChannelsLast) && last.is_contiguous_in(MemoryFormat::Contiguous)
    );
    // Results computed from it have its format, and converted back the other one.
    let w = counted(&[3, 1, 2, 2]);
    assert!(is_channels_last(&last.conv2d(&w, None)?));
    assert!(!is_channels_last(&gray.conv2d(&w, None)?));
    let back = last.contiguous()?;
    assert!(back.shares_storage(&gray) && back.strides() == gray.strides());
    // The gradient goes through.
    let x = gray.detach().requires_grad_(true)?;
    x.to(MemoryFormat::ChannelsLast)?.mul(2.0)?.sum_all()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [2.0; 24]);
    // A rank that has no channels_last.
    let error = counted(&[2, 3]).to(MemoryFormat::ChannelsLast).unwrap_err().to_string();
    assert!(error.contains("3, 4 or 5 dimensions"), "{error}");
    Ok(())
}

#[test]
fn a_convolution_with_what_follows_it_is_that_of_the_steps() -> Result<()> {
    use Activation::{Hardswish, Relu, Relu6, Silu};
    let near = |a: &Tensor, b: &Tensor| {
        let (a, b) = (values(a), values(b));
        let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-12 * (1.0 + y.abs());
        assert!(a.len() == b.len() && a.iter().zip(&b).all(close), "{a:?}, expected {b:?}");
    };
    let waves = |sizes: &[usize]| counted(sizes).mul(0.7)?.sin();
    let steps = |sum: &Tensor, activation| match activation {
        Relu => sum.relu(),
        Relu6 => sum.relu6(),
        Hardswish => sum.hardswish(),
        Silu => sum.silu(),
        Activation::None => Ok(sum.clone()),
    };
    let options = ConvOptions::default().padding(Padding::Same);
    for activation in [Activation::None, Relu, Relu6, Hardswish, Silu] {
        // One image without a batch, and its gradients.
        let leaves = || -> Result<[Tensor; 4]> {
            let all = [waves(&[2, 5, 4])?.mul(3.0)?, waves(&[3, 2, 2, 3])?, waves(&[3])?, waves(&[3, 5, 4])?];
            let [x, w, bias, add] = all.map(|t| t.detach().requires_grad_(true));
            Ok([x?, w?, bias?, add?])
        };
        let [x, w, bias, add] = leaves()?;
        let made = x.conv2d_act(&w, Some(&bias), Some(&add), activation, options)?;
        let [x2, w2, bias2, add2] = leaves()?;
        let expected = steps(&x2.conv2d_with(&w2, Some(&bias2), options)?.add(&add2)?, activation)?;
        near(&made, &expected);
        let weights = waves(&[3, 5, 4])?;
        made.mul(&weights)?.sum_all()?.backward()?;
        expected.mul(&weights)?.sum_all()?.backward()?;
        for (leaf, other) in [(x, x2), (w, w2), (bias, bias2), (add, add2)] {
            near(&leaf.grad().unwrap(), &other.grad().unwrap());
        }
    }
    // At its corners a fused activation has the same gradient as the separate one.
    for activation in [Relu, Relu6, Hardswish] {
        let leaf = || Tensor::new([[-4.0f32, -3.0, -0.0, 0.0, 3.0, 6.0, 7.0]])?.requires_grad_(true);
        let one = Tensor::new([[[1.0f32]]])?;
        let (x, x2) = (leaf()?, leaf()?);
        x.conv1d_act(&one, None, None, activation, ConvOptions::default())?.sum_all()?.backward()?;
        steps(&x2, activation)?.sum_all()?.backward()?;
        let [made, wanted] = [&x, &x2].map(|x| x.grad().unwrap().to_vec_f64());
        assert_eq!(made?, wanted?, "{activation:?}");
    }
    let (line, cube) = (waves(&[2, 1, 7])?, waves(&[1, 1, 3, 4, 3])?);
    near(
        &line.conv1d_act(&waves(&[2, 1, 3])?, None, None, Relu, ConvOptions::default())?,
        &line.conv1d(&waves(&[2, 1, 3])?, None)?.relu()?,
    );
    near(
        &cube.conv3d_act(&cube, None, Some(&waves(&[1, 1, 1, 1, 1])?), Silu, ConvOptions::default())?,
        &cube.conv3d(&cube, None)?.add(&waves(&[1, 1, 1, 1, 1])?)?.silu()?,
    );
    let wrong = waves(&[1, 3, 4, 4])?;
    let error = wrong.conv2d_act(&waves(&[3, 3, 1, 1])?, None, Some(&line), Relu, ConvOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`add`") && error.contains("[1, 3, 4, 4]"), "{error}");
    Ok(())
}

#[test]
fn same_padding_puts_the_odd_zero_at_the_end() -> Result<()> {
    let same = Padding::Same;
    let y =
        counted(&[1, 2, 3]).conv1d_with(&counted(&[2, 2, 2]), None, ConvOptions::default().padding(same))?;
    assert_eq!(values(&y), [37.0, 47.0, 21.0, 85.0, 111.0, 57.0]);
    let options = ConvOptions::default().padding(Padding::Same).dilation(3);
    let y = counted(&[1, 1, 4, 4]).conv2d_with(&counted(&[1, 1, 2, 2]), None, options)?;
    let expected = [44., 75., 30., 33., 66., 112., 44., 48., 14., 21., 6., 7., 22., 33., 10., 11.];
    assert_eq!(values(&y), expected);
    Ok(())
}

#[test]
fn a_transposed_convolution_adds_at_the_end_less_than_its_stride_or_dilation() -> Result<()> {
    let options = ConvTransposeOptions::default().stride(2).dilation(3).padding(1).output_padding(2);
    let y = counted(&[1, 2, 3]).conv_transpose1d_with(&counted(&[2, 2, 2]), None, options)?;
    let expected = [0., 27., 26., 33., 34., 0., 42., 0., 0., 41., 36., 51., 48., 0., 60., 0.];
    assert_eq!(values(&y), expected);

    let x = Tensor::from_vec(vec![1.0, 2.0, 5.0, 6.0], [1, 1, 2, 2])?;
    let bias = Tensor::new([0.5])?;
    let options = ConvTransposeOptions::default().stride([2, 1]).padding([0, 1]).output_padding([1, 0]);
    let y = x.conv_transpose2d_with(&counted(&[1, 1, 2, 2]), Some(&bias), options)?;
    assert_eq!(y.shape(), [1, 1, 5, 1]);
    assert_eq!(values(&y), [4.5, 10.5, 16.5, 38.5, 0.5]);
    Ok(())
}

#[test]
fn an_input_without_a_batch_gives_a_result_without_one() -> Result<()> {
    let (x, w) = (counted(&[2, 4, 5]), counted(&[3, 2, 2, 2]));
    let alone = x.conv2d(&w, None)?;
    let batch = x.unsqueeze(0)?.conv2d(&w, None)?;
    assert_eq!((alone.shape(), batch.shape()), (&[3, 3, 4][..], &[1, 3, 3, 4][..]));
    assert_eq!(values(&alone), values(&batch));
    let (largest, places) = x.max_pool2d_with_indices(MaxPoolOptions::new(2))?;
    assert_eq!((largest.shape(), places.shape()), (&[2, 2, 2][..], &[2, 2, 2][..]));
    assert_eq!(places.to_vec::<i64>()?, [6, 8, 16, 18, 6, 8, 16, 18]);
    assert_eq!(x.avg_pool2d(AvgPoolOptions::new(2))?.shape(), [2, 2, 2]);
    assert_eq!(counted(&[3, 4]).max_pool1d(MaxPoolOptions::new(2))?.shape(), [3, 2]);
    let volume = counted(&[1, 2, 2, 2]);
    assert_eq!(values(&volume.avg_pool3d(AvgPoolOptions::new(2))?), [4.5]);
    assert_eq!(volume.conv_transpose3d(&counted(&[1, 1, 2, 2, 2]), None)?.shape(), [1, 3, 3, 3]);
    Ok(())
}

#[test]
fn a_net_stays_in_the_format_it_is_given() -> Result<()> {
    let model = Sequential::new()
        .push(Conv2d::new_with(3, 8, 3, ConvOptions::default().padding(1))?)
        .push(BatchNorm2d::new(8)?)
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push(Conv2d::new_with(8, 4, 3, ConvOptions::default().stride(2).groups(4))?)
        .push(AvgPool2d(AvgPoolOptions::new(2).stride(1).padding(1)))
        .push(ConvTranspose2d::new_with(4, 2, 2, ConvTransposeOptions::default().stride(2))?);
    let x = Tensor::randn([2, 3, 12, 14])?;
    let last = x.to(MemoryFormat::ChannelsLast)?;
    let mut results = Vec::new();
    for input in [x, last] {
        let input = input.detach().requires_grad_(true)?;
        model.parameters().iter().for_each(|p| p.zero_grad());
        let y = model.forward(&input)?;
        assert_eq!(is_channels_last(&y), is_channels_last(&input), "{:?}", y.strides());
        y.square()?.sum_all()?.backward()?;
        let grad = input.grad().unwrap();
        assert_eq!(is_channels_last(&grad), is_channels_last(&input), "{:?}", grad.strides());
        let mut all = vec![values(&y), values(&grad)];
        all.extend(model.parameters().iter().map(|p| values(&p.grad().unwrap())));
        results.push(all.concat());
    }
    for (i, (a, b)) in results[0].iter().zip(&results[1]).enumerate() {
        assert!((a - b).abs() <= 1e-4 * a.abs().max(1.0), "{i}: {a} {b}");
    }
    Ok(())
}

#[test]
fn modules_have_pytorchs_names_shapes_and_bounds() -> Result<()> {
    let conv = Conv2d::new_with(4, 6, [3, 5], ConvOptions::default().groups(2))?;
    let state = conv.state_dict();
    assert_eq!(state.keys().collect::<Vec<_>>(), ["bias", "weight"]);
    assert_eq!((conv.weight().shape(), state["bias"].shape()), (&[6, 2, 3, 5][..], &[6][..]));
    let bound = 1.0 / 30f64.sqrt();
    // Enough channels for at least one value to be large.
    let wide = Conv2d::new_with(4, 60, [3, 5], ConvOptions::default().groups(2))?.state_dict();
    for name in ["weight", "bias"] {
        let all = [values(&state[name]), values(&wide[name])].concat();
        assert!(all.iter().all(|v| v.abs() <= bound), "{name}");
        assert!(all.iter().any(|v| v.abs() > 0.5 * bound), "{name}");
    }
    let back = ConvTranspose2d::new_with(4, 6, 3, ConvTransposeOptions::default().groups(2))?;
    assert_eq!((back.weight().shape(), back.bias().unwrap().shape()), (&[4, 3, 3, 3][..], &[6][..]));
    assert_eq!(Conv1d::without_bias(2, 3, 4, ConvOptions::default())?.num_parameters(), 24);
    let taken = Conv3d::from_tensors(counted(&[1, 1, 1, 1, 1]), None, ConvOptions::default())?;
    assert_eq!(values(&taken.forward(&counted(&[1, 1, 1, 1, 2]))?), [1.0, 2.0]);
    let error = Conv2d::new_with(4, 6, 3, ConvOptions::default().groups(4)).unwrap_err().to_string();
    assert!(
        error.contains("Conv2d") && error.contains("`groups`") && error.contains("4 for 6 and 4"),
        "{error}"
    );
    Ok(())
}

#[test]
fn wrong_calls_say_what_was_expected_and_what_came() {
    let (x, w) = (counted(&[1, 2, 4, 4]), counted(&[2, 2, 3, 3]));
    let conv = |options| x.conv2d_with(&w, None, options).unwrap_err().to_string();
    let back = |options| x.conv_transpose2d_with(&w, None, options).unwrap_err().to_string();
    let plain = ConvOptions::default();
    let transposed = ConvTransposeOptions::default();
    for (error, parts) in [
        (conv(plain.stride(0)), ["numbers of 1 or more", "[0, 0]"]),
        (conv(plain.dilation(2)), ["reaches over 5 elements of 4", "[2, 2, 3, 3]"]),
        (conv(plain.groups(3)), ["a divisor of the 2 input channels", "3"]),
        (conv(plain.padding(Padding::Same).stride(2)), ["1 where the padding is `Same`", "[2, 2]"]),
        (conv(plain.padding(usize::MAX)), ["conv", "9223372036854775807"]),
        (back(transposed.output_padding(1)), ["below the stride 1 or the dilation 1", "1"]),
        (back(transposed.stride(0)), ["1 or more", "0 and 1"]),
        (back(transposed.padding(4)), ["an output of 0 or more elements", "make -2"]),
        (back(transposed.groups(3)), ["a divisor of the 2 input channels", "3"]),
        (
            counted(&[1, 2, 0, 4]).conv_transpose2d(&w, None).unwrap_err().to_string(),
            ["of 1 or more elements in spatial dimension 0", "[1, 2, 0, 4]"],
        ),
        (
            x.conv2d_with(&counted(&[2, 2, 3]), None, plain).unwrap_err().to_string(),
            ["of 4 dimensions", "[2, 2, 3]"],
        ),
        (
            counted(&[4, 4]).conv2d_with(&w, None, plain).unwrap_err().to_string(),
            ["[batch, channels, height, width], or of 3 without the batch", "[4, 4]"],
        ),
        (
            x.conv_transpose2d_with(&counted(&[3, 2, 3, 3]), None, transposed).unwrap_err().to_string(),
            ["of shape [2, ..]", "[3, 2, 3, 3]"],
        ),
        (
            x.conv_transpose2d_with(&w, Some(&counted(&[1])), transposed).unwrap_err().to_string(),
            ["of shape [2], a number for each output channel", "[1]"],
        ),
        (
            x.max_pool2d(MaxPoolOptions::new(2).padding(2)).unwrap_err().to_string(),
            ["at most half of the 2 elements", "[2, 2]"],
        ),
        (
            x.avg_pool2d(AvgPoolOptions::new(5)).unwrap_err().to_string(),
            ["reaches over 5 elements of 4", "[5, 5]"],
        ),
        (x.avg_pool2d(AvgPoolOptions::new(0)).unwrap_err().to_string(), ["numbers of 1 or more", "[0, 0]"]),
    ] {
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}: {error}");
    }
}

#[test]
fn nan_is_the_largest_and_of_equal_elements_the_first_counts() -> Result<()> {
    let nan = f64::NAN;
    let x = Tensor::from_vec(vec![1.0, 1.0, nan, 5.0, -f64::INFINITY, -f64::INFINITY], [1, 1, 6])?;
    let (largest, places) = x.max_pool1d_with_indices(MaxPoolOptions::new(2))?;
    let largest = values(&largest);
    assert!(largest[0] == 1.0 && largest[1].is_nan() && largest[2] == -f64::INFINITY, "{largest:?}");
    assert_eq!(places.to_vec::<i64>()?, [0, 2, 4]);
    Ok(())
}
