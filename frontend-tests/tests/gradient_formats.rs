//! A gradient has the memory format of its tensor, for any format of the incoming gradient.

mod rehearsal_support;

use keyway::autograd::{self, BackwardOptions, Context, Function};
use keyway::dispatcher::dims::may_self_overlap;
use keyway::nn::{
    AdaptiveAvgPool2d, AvgPool2d, AvgPoolOptions, BatchNorm2d, Conv2d, ConvOptions, Flatten, Linear,
    MaxPool2d, MaxPoolOptions, Module, Relu, Sequential,
};
use keyway::ops::image::{InterpolateMode, InterpolateOptions};
use keyway::rng::{self, Generator};
use keyway::{DType, MemoryFormat, Result, Tensor, profiler};
use rehearsal_support::load;
use std::sync::{Arc, Mutex};

const LAST: MemoryFormat = MemoryFormat::ChannelsLast;

/// Deterministic pseudo-random values.
fn random(sizes: &[usize], seed: u64) -> Result<Tensor> {
    let number =
        |i: u64| ((i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1 << 24) as f32 - 0.5;
    Tensor::from_vec((0..sizes.iter().product::<usize>() as u64).map(number).collect(), sizes)
}

/// Whether the strides say channels_last, also where elements lie in both formats.
fn is_last(t: &Tensor) -> bool {
    t.as_ref().is_in_channels_last_order()
}

/// Whether a tensor is channels_last, or an expanded value, as in the gradient of a mean.
fn is_last_or_shared(t: &Tensor) -> bool {
    is_last(t) || may_self_overlap(t.shape(), t.strides())
}

type Step = fn(&Tensor) -> Result<Tensor>;

/// Calls on an image `[2, 4, 6, 6]`.
const STEPS: [(&str, Step); 20] = [
    ("avg_pool2d", |x| x.avg_pool2d(AvgPoolOptions::new(2))),
    ("max_pool2d", |x| x.max_pool2d(MaxPoolOptions::new(2))),
    ("adaptive_avg_pool2d", |x| x.adaptive_avg_pool2d([3, 2])),
    ("adaptive_avg_pool2d to one", |x| x.adaptive_avg_pool2d(1)),
    ("interpolate", |x| x.interpolate(&InterpolateOptions::size(9))),
    ("bilinear", |x| x.interpolate(&InterpolateOptions::size(4).mode(InterpolateMode::Bilinear))),
    ("constant_pad", |x| x.constant_pad(&[1, 2, 0, 1], 0)),
    ("pixel_shuffle", |x| x.pixel_shuffle(2)),
    ("pixel_unshuffle", |x| x.pixel_unshuffle(2)),
    ("channel_shuffle", |x| x.channel_shuffle(2)),
    ("clone", |x| x.copy()),
    ("to_dtype", |x| x.to(DType::F64)),
    ("mul", |x| x.mul(3.0)),
    ("add", |x| x.add(&x.detach())),
    ("relu", Tensor::relu),
    ("cumsum", |x| x.cumsum(2)),
    ("flip", |x| x.flip([3])),
    ("roll", |x| x.roll([1], [2])),
    ("repeat", |x| x.repeat([1, 2, 1, 1])),
    ("cat", |x| Tensor::cat(&[x, &x.detach()], 1)),
];

type Seen = Arc<Mutex<Vec<(String, Tensor)>>>;

/// Notes the gradient of a tensor.
fn watch(seen: &Seen, name: &str, t: &Tensor) -> Result<()> {
    let (seen, name) = (seen.clone(), name.to_string());
    t.register_hook(move |grad| {
        seen.lock().unwrap().push((name.clone(), grad.clone()));
        Ok(None)
    })?
    .keep();
    Ok(())
}

/// An image that is no leaf, in channels_last.
fn image() -> Result<(Tensor, Tensor)> {
    let leaf = random(&[2, 4, 6, 6], 3)?.to(LAST)?.detach().requires_grad_(true)?;
    let x = leaf.mul(2.0)?;
    assert!(is_last(&x));
    Ok((leaf, x))
}

#[test]
fn behind_a_flatten_gradients_lie_as_their_tensors_do() -> Result<()> {
    let _guard = load(&[]);
    for (name, step) in STEPS {
        let mut numbers = Vec::new();
        for flat in [true, false] {
            let seen = Seen::default();
            let (leaf, x) = image()?;
            let y = step(&x)?;
            assert!(is_last(&y), "{name}: {:?}", y.strides());
            watch(&seen, "x", &x)?;
            watch(&seen, "y", &y)?;
            let weight = random(y.shape(), 8)?.to(y.dtype())?;
            // Gradients of flattened tensors are row-major.
            let weighted = if flat {
                y.flatten(1, -1)?.mul(&weight.flatten(1, -1)?)?
            } else {
                y.mul(&weight.to(LAST)?)?
            };
            weighted.sum_all()?.backward()?;
            let seen = std::mem::take(&mut *seen.lock().unwrap());
            assert_eq!(seen.len(), 2);
            for (of, grad) in &seen {
                assert!(
                    is_last_or_shared(grad),
                    "{name}: the gradient of {of} has strides {:?}",
                    grad.strides()
                );
            }
            let grad = leaf.grad().unwrap();
            assert!(is_last(&grad), "{name}: {:?}", grad.strides());
            numbers.push(grad.to_vec_f64()?);
        }
        assert_eq!(numbers[0], numbers[1], "{name}");
    }
    Ok(())
}

#[test]
fn gradients_to_start_from_are_taken_in_any_format() -> Result<()> {
    let _guard = load(&[]);
    for (name, step) in STEPS {
        let (_leaf, x) = image()?;
        let y = step(&x)?;
        let seen = Seen::default();
        watch(&seen, "y", &y)?;
        let start = random(y.shape(), 5)?.to(y.dtype())?;
        let options = |start: Tensor, create_graph| BackwardOptions {
            gradients: Some(vec![start]),
            retain_graph: true,
            create_graph,
            ..BackwardOptions::default()
        };
        let inputs = std::slice::from_ref(&x);
        let mut made = Vec::new();
        for (start, create_graph) in
            [(start.clone(), false), (start.to(LAST)?, false), (start.requires_grad_(true)?, true)]
        {
            let grad =
                autograd::grad(std::slice::from_ref(&y), inputs, options(start.clone(), create_graph))?
                    .remove(0)
                    .unwrap();
            assert!(is_last_or_shared(&grad), "{name}: {:?}", grad.strides());
            if create_graph {
                // A reordering in between has a derivative too: each op of this test is linear in its gradient.
                let weight = random(grad.shape(), 6)?;
                let again = autograd::grad(
                    std::slice::from_ref(&grad),
                    std::slice::from_ref(&start),
                    options(weight.clone(), false),
                )?;
                let again = again[0].clone().unwrap().to_dtype(y.dtype())?;
                let [left, right] = [(&again, &start.detach()), (&weight, &grad.detach())].map(|(a, b)| {
                    a.to_dtype(DType::F64)?.mul(&b.to_dtype(DType::F64)?)?.sum_all()?.item::<f64>()
                });
                let (left, right) = (left?, right?);
                assert!((left - right).abs() < 1e-5 * (1.0 + left.abs()), "{name}: {left} and {right}");
            }
            made.push(grad.detach().to_vec_f64()?);
        }
        assert!(made[0] == made[1] && made[0] == made[2], "{name}");
        assert!(seen.lock().unwrap().iter().all(|(_, grad)| is_last(grad)), "{name}");
    }
    Ok(())
}

/// Gives its gradient back in row-major order.
struct RowMajor;

impl Function for RowMajor {
    fn name(&self) -> &'static str {
        "row_major"
    }

    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].copy()?])
    }

    fn backward(&self, _: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].contiguous()?)])
    }
}

#[test]
fn what_functions_and_hooks_give_is_brought_to_the_format() -> Result<()> {
    let _guard = load(&[]);
    let (leaf, x) = image()?;
    let y = autograd::apply(RowMajor, std::slice::from_ref(&x))?.remove(0);
    let z = y.avg_pool2d(AvgPoolOptions::new(2))?;
    z.register_hook(|grad| grad.mul(2.0)?.contiguous().map(Some))?.keep();
    let seen = Seen::default();
    watch(&seen, "z", &z)?;
    watch(&seen, "y", &y)?;
    watch(&seen, "x", &x)?;
    z.sum_all()?.backward()?;
    for (of, grad) in seen.lock().unwrap().iter().chain([&("leaf".to_string(), leaf.grad().unwrap())]) {
        assert!(is_last(grad), "{of}: {:?}", grad.strides());
    }
    Ok(())
}

#[test]
fn one_number_at_every_place_is_not_copied() -> Result<()> {
    let _guard = load(&[]);
    let (_leaf, x) = image()?;
    let y = x.mul(2.0)?;
    let seen = Seen::default();
    watch(&seen, "y", &y)?;
    y.sum_all()?.backward()?;
    assert_eq!(seen.lock().unwrap()[0].1.strides(), [0; 4]);
    Ok(())
}

#[test]
fn a_transposed_view_is_no_image() -> Result<()> {
    let _guard = load(&[]);
    let x = random(&[2, 5, 3], 1)?.requires_grad_(true)?.mul(1.0)?;
    let transposed = x.transpose(1, 2)?;
    assert!(transposed.is_contiguous_in(LAST));
    let profile = profiler::trace();
    transposed.matmul(&random(&[2, 5, 4], 2)?)?.flatten(1, -1)?.square()?.sum_all()?.backward()?;
    let report = profile.report();
    assert!(report.reorderings.is_empty(), "{:?}", report.reorderings);
    Ok(())
}

/// Two blocks, a mean over all pixels or over windows, and a layer over what is flattened.
fn net(global: bool) -> Result<Sequential> {
    let options = || ConvOptions::default().padding(1);
    let net = Sequential::new()
        .push(Conv2d::without_bias(3, 16, 3, options())?)
        .push(BatchNorm2d::new(16)?)
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push(Conv2d::new_with(16, 24, 3, options())?)
        .push(Relu);
    Ok(if global {
        net.push(AdaptiveAvgPool2d::new(1)).push(Flatten::default()).push(Linear::new(24, 10)?)
    } else {
        net.push(AvgPool2d::new(2)).push(Flatten::default()).push(Linear::new(96, 10)?)
    })
}

#[test]
fn a_net_reorders_memory_only_around_its_flatten() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    for (global, copies) in [(true, 0), (false, 2)] {
        let model = rng::with_generator(&Generator::new(7), || net(global))?;
        model.to_memory_format(LAST)?;
        let x = random(&[2, 3, 8, 8], 1)?.to(LAST)?;
        let profile = profiler::trace();
        model.forward(&x)?.square()?.mean_all()?.backward()?;
        let report = profile.report();
        let calls: u64 = report.reorderings.iter().map(|r| r.calls).sum();
        assert_eq!(calls, copies, "{:?}", report.reorderings);
        // The bytes read and written by flattening: 2 images of 24 channels of 2x2.
        assert!(
            report.reorderings.iter().all(|r| r.bytes <= 2 * (2 * 24 * 4 * 4) * r.calls),
            "{:?}",
            report.reorderings
        );
        // Every gradient is computed by the kernels for images.
        for row in report.rows.iter().filter(|row| row.op.starts_with("conv")) {
            assert!(row.served_by.contains("keyway-channels-last"), "{} by {}", row.op, row.served_by);
        }
    }
    Ok(())
}
