//! Steps of all parameters in one call have the bits of the same formula in single ops, wherever parameters and gradients lie.

use keyway::optim::{Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use keyway::{Arg, DType, Result, Tensor};
use keyway_dispatcher::op::Out;

/// Pseudo-random values.
fn numbers(seed: usize, sizes: &[usize], dtype: DType) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let values = (0..count).map(|i| (((i + 17 * seed) * 7919 + 13) % 1009) as f64 / 504.5 - 1.0).collect();
    Tensor::from_vec::<f64>(values, sizes).unwrap().to_dtype(dtype).unwrap()
}

/// A parameter and its gradient: row-major, transposed, with gaps, or of different orders.
fn pair(seed: usize, dtype: DType, sizes: [usize; 2], way: usize) -> (Tensor, Tensor) {
    let transposed = |seed| numbers(seed, &[sizes[1], sizes[0]], dtype).t().unwrap();
    let plain = |seed| numbers(seed, &sizes, dtype);
    let gaps = |seed| numbers(seed, &[sizes[0], 2 * sizes[1]], dtype).narrow(1, 0, sizes[1]).unwrap();
    match way % 4 {
        0 => (plain(seed), plain(seed + 1)),
        1 => (transposed(seed), transposed(seed + 1)),
        2 => (gaps(seed), gaps(seed + 1)),
        _ => (plain(seed), transposed(seed + 1)),
    }
}

fn all(dtype: DType) -> Vec<(Tensor, Tensor)> {
    let sizes = [[3, 5], [0, 4], [1, 1], [40, 70], [7, 1], [64, 33], [2, 0], [5, 3]];
    sizes.iter().enumerate().map(|(k, &sizes)| pair(k, dtype, sizes, k)).collect()
}

fn bits(t: &Tensor) -> Vec<u64> {
    t.detach().to_vec_f64().unwrap().into_iter().map(f64::to_bits).collect()
}

/// Three steps of an optimiser, and the same by `step` for each parameter, which gets its state.
fn compare<M>(
    what: &str,
    dtype: DType,
    make: impl Fn(Vec<Tensor>) -> Box<dyn Optimizer>,
    mut step: impl FnMut(&Tensor, &Tensor, &mut Option<M>) -> Result<()>,
) {
    let leaf = |t: &Tensor| {
        let own = Tensor::empty_strided_with(t.shape(), t.strides(), dtype).unwrap();
        own.copy_(t).unwrap();
        own
    };
    let (together, expected) = (all(dtype), all(dtype));
    let parameters: Vec<Tensor> =
        together.iter().map(|(p, _)| leaf(p).requires_grad_(true).unwrap()).collect();
    let alone: Vec<Tensor> = expected.iter().map(|(p, _)| leaf(p)).collect();
    let mut optimizer = make(parameters.clone());
    let mut memory: Vec<Option<M>> = (0..alone.len()).map(|_| None).collect();
    for round in 0..3 {
        for (nth, (_, grad)) in together.iter().enumerate() {
            let grad = grad.mul(f64::from(round + 1)).unwrap();
            let own = Tensor::empty_strided_with(grad.shape(), together[nth].1.strides(), dtype).unwrap();
            own.copy_(&grad).unwrap();
            parameters[nth].set_grad(own.clone()).unwrap();
            // One has no gradient in the second step.
            if (round, nth) == (1, 3) {
                parameters[nth].zero_grad();
                continue;
            }
            step(&alone[nth], &own, &mut memory[nth]).unwrap();
        }
        optimizer.step().unwrap();
    }
    for (nth, (p, expected)) in parameters.iter().zip(&alone).enumerate() {
        assert_eq!(bits(p), bits(expected), "{what} {dtype}, parameter {nth}");
        assert!(p.is_leaf() && p.strides() == together[nth].0.strides());
    }
}

#[test]
fn steps_have_the_bits_of_single_ops() {
    for dtype in [DType::F32, DType::F64] {
        for (momentum, weight_decay, dampening, nesterov) in [
            (0.0, 0.0, 0.0, false),
            (0.0, 0.125, 0.0, false),
            (0.9, 0.0, 0.0, false),
            (0.9, 0.01, 0.3, false),
            (0.9, 0.01, 0.0, true),
        ] {
            let o = SgdOptions { lr: 0.07, momentum, weight_decay, dampening, nesterov };
            compare(
                &format!("{o:?}"),
                dtype,
                |parameters| Box::new(Sgd::new(parameters, o).unwrap()),
                |p, grad, buffer: &mut Option<Tensor>| {
                    if o.momentum != 0.0 {
                        let share = if buffer.is_some() { 1.0 - o.dampening } else { 1.0 };
                        let v = match buffer.as_ref() {
                            Some(v) => v.mul(o.momentum)?.add_with(grad, share)?,
                            None => grad.copy()?,
                        };
                        let v =
                            if o.weight_decay == 0.0 { v } else { v.add_with(p, share * o.weight_decay)? };
                        *buffer = Some(v.clone());
                        if !o.nesterov {
                            p.add_with_(&v, -o.lr)?;
                            return Ok(());
                        }
                    }
                    p.mul_(1.0 - o.lr * o.weight_decay)?.add_with_(grad, -o.lr)?;
                    if let Some(v) = buffer {
                        p.add_with_(&*v, -o.lr * o.momentum)?;
                    }
                    Ok(())
                },
            );
        }
        for (weight_decay, decoupled) in [(0.0, false), (0.1, false), (0.1, true)] {
            let o = AdamOptions { lr: 0.03, weight_decay, ..AdamOptions::default() };
            compare(
                &format!("{o:?} {decoupled}"),
                dtype,
                |parameters| match decoupled {
                    true => Box::new(
                        AdamW::new(parameters, AdamWOptions { lr: o.lr, weight_decay, ..Default::default() })
                            .unwrap(),
                    ),
                    false => Box::new(Adam::new(parameters, o).unwrap()),
                },
                |p, grad, means: &mut Option<(i32, Tensor, Tensor)>| {
                    let (steps, m, v) = match means.take() {
                        Some(means) => means,
                        None => (0, p.zeros_like()?, p.zeros_like()?),
                    };
                    let steps = steps + 1;
                    let grad = match decoupled || weight_decay == 0.0 {
                        true => grad.clone(),
                        false => grad.add_with(p, weight_decay)?,
                    };
                    m.mul_(o.beta1)?.add_with_(&grad, 1.0 - o.beta1)?;
                    v.mul_(o.beta2)?.addcmul_with_(&grad, &grad, 1.0 - o.beta2)?;
                    let root = (1.0 - o.beta2.powf(f64::from(steps))).sqrt();
                    let rate = o.lr * root / (1.0 - o.beta1.powf(f64::from(steps)));
                    p.mul_(if decoupled { 1.0 - o.lr * weight_decay } else { 1.0 })?;
                    p.addcdiv_with_(&m, &v.sqrt()?.add(o.eps * root)?, -rate)?;
                    *means = Some((steps, m, v));
                    Ok(())
                },
            );
        }
    }
}

#[test]
fn steps_that_are_counted_on_the_device_go_on_from_saved_ones() {
    let make = |device_counts: bool| {
        let w = numbers(1, &[4, 3], DType::F64).requires_grad_(true).unwrap();
        let adam = AdamW::new(vec![w.clone()], AdamWOptions::default()).unwrap();
        (w, if device_counts { adam.capturable().unwrap() } else { adam })
    };
    let step = |(w, adam): &mut (Tensor, AdamW)| {
        w.set_grad(numbers(2, &[4, 3], DType::F64)).unwrap();
        adam.step().unwrap();
    };
    let (mut by_host, mut by_device) = (make(false), make(true));
    for _ in 0..5 {
        step(&mut by_host);
        step(&mut by_device);
    }
    let (a, b) = (by_host.1.state_dict().unwrap(), by_device.1.state_dict().unwrap());
    assert_eq!(b["state.0.step"].to_vec::<i64>().unwrap(), [5]);
    for (key, value) in &a {
        for (x, y) in value.to_vec_f64().unwrap().iter().zip(b[key].to_vec_f64().unwrap()) {
            assert!((x - y).abs() <= 1e-14 * x.abs().max(1.0), "{key}");
        }
    }
    by_device.1.load_state_dict(&a).unwrap();
    by_device.0.detach().copy_(&by_host.0.detach()).unwrap();
    step(&mut by_host);
    step(&mut by_device);
    let (a, b) = (by_host.0.detach().to_vec_f64().unwrap(), by_device.0.detach().to_vec_f64().unwrap());
    assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() <= 1e-14), "{a:?} {b:?}");
}

#[test]
fn tensors_to_change_that_share_elements_are_refused_by_the_op() {
    keyway::runtime::start().unwrap();
    let step = |parameters: &[&Tensor], grads: &[&Tensor]| {
        let entry = keyway_dispatcher::registry::find_op("sgd_step").unwrap();
        let (p, g): (Vec<_>, Vec<_>) =
            (parameters.iter().map(|&t| t.as_ref()).collect(), grads.iter().map(|&t| t.as_ref()).collect());
        let mut values = vec![Arg::Tensors(&p), Arg::Tensors(&g), Arg::Tensors(&[])];
        values.extend([0.5, 0.0, 0.0, 0.0].map(Arg::Float));
        values.extend([false, false].map(Arg::Bool));
        let args = keyway_dispatcher::op::Args { op: entry, values: &values };
        keyway_dispatcher::call::call(args, Out::Given(&p)).map(drop)
    };
    let whole = numbers(3, &[12], DType::F32);
    let before = bits(&whole);
    let part = |at, len| whole.narrow(0, at, len).unwrap();
    let (a, b, grad) = (part(0, 6), part(4, 6), numbers(4, &[6], DType::F32));
    let own: Vec<Tensor> = (0..6).map(|seed| numbers(seed, &[6], DType::F32)).collect();
    // Few tensors, and more than are compared in pairs.
    for count in [0, own.len()] {
        for [first, second] in [[&a, &b], [&b, &a], [&a, &part(0, 6)]] {
            let parameters: Vec<&Tensor> = own[..count].iter().chain([first, second]).collect();
            let text = step(&parameters, &vec![&grad; count + 2]).unwrap_err().to_string();
            assert!(text.contains("sgd_step") && text.contains("another output"), "{text}");
            assert_eq!(bits(&whole), before);
        }
    }
    // Side by side, and columns between each other, are tensors of their own.
    let half = grad.mul(0.5).unwrap();
    let expected: Vec<u64> = [bits(&a.sub(&half).unwrap()), bits(&part(6, 6).sub(&half).unwrap())].concat();
    step(&[&a, &part(6, 6)], &[&grad, &grad]).unwrap();
    assert_eq!(bits(&whole), expected);
    let columns = [0, 1].map(|from| whole.slice(0, Some(from), None, 2).unwrap());
    let expected = columns.each_ref().map(|column| bits(&column.sub(&half).unwrap()));
    step(&[&columns[0], &columns[1]], &[&grad, &grad]).unwrap();
    assert_eq!(columns.each_ref().map(bits), expected);
}

#[test]
fn tensors_that_do_not_go_together_are_refused_with_the_reason() {
    let call = |parameters: &[&Tensor], grads: &[&Tensor]| {
        keyway::runtime::start().unwrap();
        let entry = keyway_dispatcher::registry::find_op("sgd_step").unwrap();
        let (p, g): (Vec<_>, Vec<_>) =
            (parameters.iter().map(|&t| t.as_ref()).collect(), grads.iter().map(|&t| t.as_ref()).collect());
        let mut values = vec![Arg::Tensors(&p), Arg::Tensors(&g), Arg::Tensors(&[])];
        values.extend([0.5, 0.0, 0.0, 0.0].map(Arg::Float));
        values.extend([false, false].map(Arg::Bool));
        let args = keyway_dispatcher::op::Args { op: entry, values: &values };
        keyway_dispatcher::call::call(args, Out::New).unwrap_err().to_string()
    };
    let (a, b) = (numbers(0, &[3], DType::F32), numbers(0, &[3], DType::F64));
    let text = call(&[&a, &b], &[&a, &b]);
    assert!(text.contains("sgd_step") && text.contains("once for the tensors of each dtype"), "{text}");
    let text = call(&[&a], &[&b]);
    assert!(text.contains("grads") && text.contains("f64"), "{text}");
    let text = call(&[&a], &[]);
    assert!(text.contains("a tensor for each of the 1 parameters"), "{text}");
}
