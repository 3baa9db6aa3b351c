//! Failures found by random programs compared with PyTorch: combinations of ops, memory and gradients that no list of cases
//! had. The values are PyTorch's, in f64 where the dtype is not what matters.

use keyway::MemoryFormat;
use keyway::autograd::{BackwardOptions, grad};
use keyway::nn::{AttentionOptions, ConvOptions, PadMode};
use keyway::optim::{AdamW, AdamWOptions, Optimizer};
use keyway::{DType, Result, Tensor};
use std::sync::{Arc, Mutex};

/// An op of one tensor.
type Function = fn(&Tensor) -> Result<Tensor>;

fn leaf(values: &[f64]) -> Result<Tensor> {
    Tensor::new(values)?.requires_grad_(true)
}

/// The gradient of a sum by `x`.
fn gradient(y: &Tensor, x: &Tensor, create_graph: bool) -> Result<Tensor> {
    let options = BackwardOptions { create_graph, ..BackwardOptions::default() };
    Ok(grad(&[y.sum(..)?], &[x], options)?.remove(0).expect("a gradient"))
}

fn near(got: &Tensor, expected: &[f64]) {
    let got = got.to_vec_f64().unwrap();
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(close),
        "{got:?}, expected {expected:?}"
    );
}

#[test]
fn the_gradient_of_layer_norm_in_f16_is_one_with_and_without_a_graph() -> Result<()> {
    let upstream = Tensor::new([[64.0f32, -128.0, 32.0, 192.0]])?.to_dtype(DType::F16)?;
    let made = |create_graph| -> Result<Vec<f64>> {
        let x =
            Tensor::new([[-400.0f32, 200.0, 400.0, -100.0]])?.to_dtype(DType::F16)?.requires_grad_(true)?;
        let options =
            BackwardOptions { create_graph, gradients: Some(vec![upstream.clone()]), ..Default::default() };
        grad(&[x.layer_norm(4, None, None)?], &[&x], options)?.remove(0).expect("a gradient").to_vec_f64()
    };
    let (plain, graph) = (made(false)?, made(true)?);
    for ((a, b), expected) in plain.iter().zip(&graph).zip([-0.1559, -0.4575, 0.1810, 0.4324]) {
        assert!((a - expected).abs() < 1e-3 && (b - expected).abs() < 1e-3, "{plain:?} {graph:?}");
    }
    Ok(())
}

#[test]
fn a_result_has_memory_of_its_own_where_nothing_is_to_be_done() -> Result<()> {
    let results: [(&str, Function); 7] = [
        ("circular pad", |x| x.pad_with((0, 0), PadMode::Circular, 0.0)),
        ("reflect pad", |x| x.pad_with((0, 0), PadMode::Reflect, 0.0)),
        ("pixel_shuffle", |x| x.pixel_shuffle(1)),
        ("pixel_unshuffle", |x| x.pixel_unshuffle(1)),
        ("channel_shuffle", |x| x.channel_shuffle(1)),
        ("channel_shuffle of single channels", |x| x.channel_shuffle(4)),
        ("interpolate", |x| x.interpolate(&keyway::nn::InterpolateOptions::scale(1.0))),
    ];
    for (what, result) in results {
        for recorded in [false, true] {
            let x = Tensor::ones((1, 4, 2, 2))?.requires_grad_(recorded)?;
            let own = x.mul(1.0)?;
            result(&own)?.zero_()?;
            assert_eq!(own.sum(..)?.item::<f32>()?, 16.0, "{what}, recorded {recorded}");
        }
    }
    Ok(())
}

#[test]
fn results_of_several_parts_are_changed_in_place_under_a_graph() -> Result<()> {
    let results: [(&str, Function); 5] = [
        ("pixel_shuffle", |x| x.pixel_shuffle(2)),
        ("pixel_unshuffle", |x| x.pixel_unshuffle(2)),
        ("channel_shuffle", |x| x.channel_shuffle(2)),
        ("group_norm", |x| x.transpose(2, 3)?.group_norm(2, None, None)),
        ("cummin", |x| Ok(x.transpose(2, 3)?.cummin(1)?.0)),
    ];
    for (what, result) in results {
        let x = keyway::rng::with_generator(&keyway::rng::Generator::new(3), || Tensor::randn((1, 4, 4, 4)))?;
        let gradients = |in_place: bool| -> Result<Vec<f32>> {
            let x = x.copy()?.requires_grad_(true)?;
            let made = result(&x.mul(1.0)?)?;
            let changed = if in_place { made.relu_()? } else { made.relu()? };
            gradient(&changed.square()?, &x, false)?.to_vec::<f32>()
        };
        assert_eq!(gradients(true)?, gradients(false)?, "{what}");
    }
    Ok(())
}

#[test]
fn what_was_seen_with_other_strides_may_change() -> Result<()> {
    let x = Tensor::ones((2, 1, 4, 1))?.to(MemoryFormat::ChannelsLast)?.detach().requires_grad_(true)?;
    let y = x.mul(1.25)?.contiguous()?;
    let z = y.mul(2.0)?;
    y.add_(1.0)?;
    near(&gradient(&z.sum(..)?.add(&y.sum(..)?)?, &x, false)?, &[3.75; 8]);

    let x = leaf(&[1.0; 8])?;
    let y = x.mul(1.25)?;
    let seen = y.as_strided((2, 4), (4, 1))?;
    y.add_(&y.detach())?;
    near(&gradient(&seen, &x, false)?, &[1.25; 8]);
    Ok(())
}

#[test]
fn gradients_of_gradients_pass_a_change_of_a_view() -> Result<()> {
    let changes: [(&str, Function, Function); 4] = [
        ("tanh", Tensor::tanh_, Tensor::tanh),
        ("sigmoid", Tensor::sigmoid_, Tensor::sigmoid),
        ("exp", Tensor::exp_, Tensor::exp),
        ("sqrt", Tensor::sqrt_, Tensor::sqrt),
    ];
    for (what, in_place, function) in changes {
        let of = |changed: bool| -> Result<Vec<f64>> {
            let x = leaf(&[0.5, 0.25, 0.75])?;
            let y = x.mul(1.0)?;
            let y = if changed {
                in_place(&y.narrow(0, 0, 2)?)?;
                y
            } else {
                Tensor::cat(&[function(&y.narrow(0, 0, 2)?)?, y.narrow(0, 2, 1)?], 0)?
            };
            let first = gradient(&y.square()?, &x, true)?;
            gradient(&first.square()?, &x, false)?.to_vec_f64()
        };
        let (got, expected) = (of(true)?, of(false)?);
        assert!(
            got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12),
            "{what}: {got:?} {expected:?}"
        );
        if what == "tanh" {
            near(&Tensor::new(&got)?, &[0.8217, 1.4198, 6.0]);
        }
    }
    Ok(())
}

#[test]
fn logsigmoid_is_smooth_at_0() -> Result<()> {
    let x = leaf(&[0.0, -0.0, 1e-9, -40.0, 40.0, -800.0, 800.0])?;
    let y = x.logsigmoid()?;
    let first = gradient(&y, &x, true)?;
    near(&first, &[0.5, 0.5, 0.5, 1.0, 0.0, 1.0, 0.0]);
    near(&gradient(&first, &x, false)?, &[-0.25, -0.25, -0.25, 0.0, 0.0, 0.0, 0.0]);
    let tails = y.to_vec_f64()?;
    assert_eq!(tails[5], -800.0);
    assert!((tails[4] / -(-40f64).exp() - 1.0).abs() < 1e-12, "{tails:?}");
    Ok(())
}

#[test]
fn an_empty_batch_leaves_running_statistics() -> Result<()> {
    let (mean, var) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([3.0f32, 4.0])?);
    let x = Tensor::zeros((0, 2, 3))?;
    x.batch_norm(Some((&mean, &var)), None, None, true, 0.1, 1e-5)?;
    assert_eq!((mean.to_vec::<f32>()?, var.to_vec::<f32>()?), (vec![1.0, 2.0], vec![3.0, 4.0]));
    Ok(())
}

#[test]
fn a_variance_beyond_f16_is_mixed_before_it_is_rounded() -> Result<()> {
    let half = |values: &[f64]| Tensor::new(values)?.to_dtype(DType::F16);
    let x = half(&[-300.0, 300.0, -290.0, 290.0])?.reshape((1, 1, 4))?;
    let after = |momentum: f64| -> Result<f64> {
        let (mean, var) = (half(&[0.0])?, half(&[1.0])?);
        x.batch_norm(Some((&mean, &var)), None, None, true, momentum, 1e-5)?;
        Ok(var.to_vec_f64()?[0])
    };
    assert!((after(0.1)? / 11608.0 - 1.0).abs() < 2e-3, "{}", after(0.1)?);
    assert_eq!(after(1.0)?, f64::INFINITY);
    Ok(())
}

#[test]
fn second_derivatives_of_a_product_with_a_0_take_memory_as_the_product() -> Result<()> {
    let mut values = vec![1.0; 2100];
    values[7] = 0.0;
    let x = leaf(&values)?;
    let first = gradient(&x.prod(..)?, &x, true)?;
    assert_eq!(first.to_vec_f64()?.iter().sum::<f64>(), 1.0);
    let second = gradient(&first, &x, false)?.to_vec_f64()?;
    // Of all pairs only that of the element and the 0 has a product of 1.
    assert_eq!((second[7], second[8]), (2099.0, 1.0));
    Ok(())
}

#[test]
fn a_sum_behind_a_norm_gives_the_gradients_of_one_in_memory() -> Result<()> {
    let norms: [(&str, Function); 3] = [
        ("group_norm", |x| x.group_norm(2, None, None)),
        ("batch_norm", |x| x.batch_norm(None, None, None, true, 0.1, 1e-5)),
        ("layer_norm", |x| x.layer_norm(5, None, None)),
    ];
    for (what, norm) in norms {
        for format in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast] {
            let x =
                keyway::rng::with_generator(&keyway::rng::Generator::new(5), || Tensor::randn((2, 4, 3, 5)))?
                    .to(format)?;
            let of = |dense: bool| -> Result<Vec<f64>> {
                let x = x.copy()?.requires_grad_(true)?;
                let one = Tensor::new(2.0f32)?.expand(x.shape())?;
                let start = if dense { one.contiguous()? } else { one };
                let options = BackwardOptions { gradients: Some(vec![start]), ..Default::default() };
                grad(&[norm(&x)?.mul(&x)?], &[&x], options)?.remove(0).expect("a gradient").to_vec_f64()
            };
            let (got, expected) = (of(false)?, of(true)?);
            assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{what} {format:?}");
        }
    }
    Ok(())
}

#[test]
fn what_is_no_probability_has_no_finite_loss() -> Result<()> {
    let (x, target) = (Tensor::new([3.0f32, -2.0])?, Tensor::new([1.0f32, 0.0])?);
    assert!(x.binary_cross_entropy(&target)?.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn numbers_are_refused_where_a_dtype_cannot_hold_them() {
    let text = |made: Result<Tensor>| made.unwrap_err().to_string();
    let wide = text(Tensor::new_with([1, 300], DType::U8));
    assert!(wide.contains("from 0 to 255") && wide.contains("300"), "{wide}");
    assert!(text(Tensor::new_with([f32::NAN], DType::I64)).contains("NaN"));
    assert!(text(Tensor::new_with([-1i64], DType::U64)).contains("-1"));
    assert!(text(Tensor::new_with([1u64 << 63], DType::I64)).contains("9223372036854775808"));
    let largest = Tensor::new_with([i64::MAX as u64], DType::I64).unwrap();
    assert_eq!(largest.to_vec::<i64>().unwrap(), [i64::MAX]);
    assert_eq!(Tensor::new_with([1.9, -0.5], DType::U8).unwrap().to_vec::<u8>().unwrap(), [1, 0]);
}

#[test]
fn complex_numbers_are_printed() -> Result<()> {
    let parts = keyway::storage::Blob::from_owner(vec![1.5f32, -2.0, 0.0, 0.25]);
    let x = Tensor::from_blob(parts, 2, DType::C64)?;
    assert_eq!(x.to_string(), "tensor([1.5000-2.0000j, 0.0000+0.2500j], dtype=c64)");
    Ok(())
}

#[test]
fn a_function_of_references_adds_them() -> Result<()> {
    fn sum(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        #[allow(clippy::needless_borrows_for_generic_args, reason = "as people write it")]
        x.add(&y)
    }
    assert_eq!(sum(&Tensor::ones(2)?, &Tensor::ones(2)?)?.to_vec::<f32>()?, [2.0; 2]);
    Ok(())
}

#[test]
fn messages_name_what_does_not_fit() -> Result<()> {
    let text = |made: Result<Tensor>| made.unwrap_err().to_string();
    let conv = text(Tensor::ones((1, 1, 8, 8))?.conv2d_with(
        &Tensor::ones((8, 3, 3, 3))?,
        None,
        ConvOptions::default(),
    ));
    assert!(
        conv.contains("`input`") && conv.contains("[_, 3, ..]") && conv.contains("[8, 3, 3, 3]"),
        "{conv}"
    );
    let (query, key) = (Tensor::ones((1, 8, 4, 2))?, Tensor::ones((1, 2, 4, 2))?);
    let attention = text(query.scaled_dot_product_attention_with(&key, &key, AttentionOptions::default()));
    assert!(attention.contains("`key`") && attention.contains("enable_gqa"), "{attention}");
    Ok(())
}

#[test]
fn a_step_without_gradients_is_told_of_once() -> Result<()> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let to = lines.clone();
    keyway::dispatcher::log::set_sink(Box::new(move |_, text| to.lock().unwrap().push(text.to_string())));
    let w = Tensor::ones(2)?.requires_grad_(true)?;
    let mut optimizer = AdamW::new(vec![w.clone()], AdamWOptions::default())?;
    w.square()?.sum(..)?.backward()?;
    optimizer.step()?;
    assert!(!lines.lock().unwrap().iter().any(|line| line.contains("changed nothing")));
    optimizer.zero_grad();
    (0..2).try_for_each(|_| optimizer.step())?;
    let told: Vec<String> =
        lines.lock().unwrap().iter().filter(|l| l.contains("changed nothing")).cloned().collect();
    assert!(
        matches!(&told[..], [one] if one.starts_with("AdamW.step changed nothing: none of its 1 parameters")),
        "{told:?}"
    );
    Ok(())
}
