//! Mixed precision: which op works in which dtype, what autograd makes of it, and the scaler of losses.

use keyway::autocast::{autocast, autocast_dtype, autocast_off};
use keyway::autograd::checkpoint;
use keyway::nn::functional as F;
use keyway::nn::{BatchNorm2d, Conv2d, LayerNorm, Linear, Module, MultiheadAttention};
use keyway::optim::{
    AdamW, AdamWOptions, GradScaler, GradScalerOptions, GradScalerState, Optimizer, Sgd, SgdOptions,
    clip_grad_norm_,
};
use keyway::prelude::*;
use keyway::rng::{self, Generator};

fn refused<T>(made: keyway::Result<T>, message: &str) {
    let text = made.map(drop).expect_err(message).to_string();
    assert!(text.contains(message), "{text}");
}

#[test]
fn each_op_in_its_dtype() -> keyway::Result<()> {
    for low in [DType::F16, DType::BF16] {
        let x = Tensor::ones((2, 3, 4))?;
        let m = Tensor::ones((4, 4))?;
        let _guard = autocast(low)?;
        assert_eq!(autocast_dtype(), Some(low));
        let half = m.mm(&m)?;
        for made in [
            half.clone(),
            x.matmul(&m)?,
            x.linear(&m, Some(&Tensor::ones(4)?))?,
            x.bmm(&x.transpose(1, 2)?)?,
            m.mv(&Tensor::ones(4)?)?,
            m.addmm(&m, &half)?,
            x.scaled_dot_product_attention(&x, &x)?,
            F::conv1d(&x, &Tensor::ones((2, 3, 1))?, None)?,
            x.conv_transpose1d(&Tensor::ones((3, 2, 1))?, None)?,
            Tensor::einsum("bij,jk->bik", &[&x, &m])?,
            x.prelu(&Tensor::ones(3)?)?,
            // Ops of no kind keep the dtype.
            half.relu()?,
            half.add(&half)?,
            half.gelu()?,
        ] {
            assert_eq!(made.dtype(), low);
        }
        for made in [
            half.exp()?,
            half.softmax(-1)?,
            half.log_softmax(0)?,
            half.sum_all()?,
            half.cumsum(0)?,
            half.pow(2)?,
            half.norm_all()?,
            half.layer_norm([4], None, None)?,
            half.mse_loss(&half)?,
            half.huber_loss(&half)?,
            half.triplet_margin_loss(&half, &half)?,
            half.cosine_embedding_loss(&half, &Tensor::ones(4)?)?,
            half.margin_ranking_loss(&half, &half)?,
            half.hinge_embedding_loss(&half)?,
            half.soft_margin_loss(&half)?,
            half.multi_margin_loss(&Tensor::zeros_with(4, DType::I64)?)?,
            half.poisson_nll_loss(&half)?,
            half.gaussian_nll_loss(&half, &half)?,
            half.pairwise_distance(&half)?,
            half.trapezoid(-1)?,
            half.cross_entropy(&Tensor::zeros_with(4, DType::I64)?)?,
            // Promoted as always.
            half.add(&m)?,
        ] {
            assert_eq!(made.dtype(), DType::F32);
        }
        // f64, integers, in-place and `out=` forms are unchanged.
        let wide = m.to_dtype(DType::F64)?;
        assert_eq!(wide.mm(&wide)?.dtype(), DType::F64);
        assert_eq!(m.mm(&wide)?.dtype(), DType::F64);
        let whole = m.to_dtype(DType::I64)?;
        assert_eq!((whole.mm(&whole)?.dtype(), whole.sum_all()?.dtype()), (DType::I64, DType::I64));
        assert_eq!(half.copy()?.exp_()?.dtype(), low);
        let mut out = Tensor::zeros((4, 4))?;
        m.mm_out(&m, &mut out)?;
        assert_eq!(out.dtype(), DType::F32);
    }
    assert_eq!(autocast_dtype(), None);
    assert_eq!(Tensor::ones((2, 2))?.mm(&Tensor::ones((2, 2))?)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn guards_nest_and_drop_in_any_order() -> keyway::Result<()> {
    let m = Tensor::ones((2, 2))?;
    let dtype = || m.mm(&m).map(|made| made.dtype());
    let outer = autocast(DType::F16)?;
    let inner = autocast(DType::BF16)?;
    assert_eq!(dtype()?, DType::BF16);
    let off = autocast_off();
    assert_eq!((dtype()?, autocast_dtype()), (DType::F32, None));
    let again = autocast(DType::F16)?;
    assert_eq!(dtype()?, DType::F16);
    drop(again);
    assert_eq!(dtype()?, DType::F32);
    drop(off);
    drop(outer);
    assert_eq!(dtype()?, DType::BF16);
    // Threads have their own.
    let elsewhere = std::thread::scope(|s| s.spawn(dtype).join().unwrap());
    assert_eq!(elsewhere?, DType::F32);
    drop(inner);
    assert_eq!(dtype()?, DType::F32);
    Ok(())
}

#[test]
fn other_dtypes_are_refused() {
    for dtype in [DType::F32, DType::F64, DType::I64, DType::BOOL] {
        refused(autocast(dtype), &format!("autocast: `dtype` must be f16 or bf16, but got {dtype}"));
    }
    assert_eq!(autocast_dtype(), None);
}

#[test]
fn parameters_stay_wide_and_are_cast_once() -> keyway::Result<()> {
    let w = Tensor::randn_with((8, 8), DType::F32)?.requires_grad_(true)?;
    let x = Tensor::randn((3, 8))?;
    let expected = {
        let loss = x.to_dtype(DType::BF16)?.mm(&w.to_dtype(DType::BF16)?)?.to_dtype(DType::F32)?.sum_all()?;
        loss.backward()?;
        let grad = w.grad().unwrap();
        w.zero_grad();
        grad
    };
    let _guard = autocast(DType::BF16)?;
    let (a, b) = (x.mm(&w)?, x.mm(&w)?);
    let cast = |y: &Tensor| y.grad_fn().unwrap().next_functions()[1].clone().unwrap().0;
    assert_eq!(cast(&a).name(), "to_dtype");
    assert!(cast(&a).ptr_eq(&cast(&b)), "the cast of a parameter is kept");
    // Each backward pass runs through the single cast.
    a.sum_all()?.backward()?;
    b.sum_all()?.backward()?;
    let grad = w.grad().unwrap();
    assert_eq!(grad.dtype(), DType::F32);
    assert_eq!(grad.to_vec::<f32>()?, (&expected * 2.0)?.to_vec::<f32>()?);
    // Without a graph there is a cast of its own, which brings none into a later one.
    let y = {
        let _off = keyway::no_grad();
        x.mm(&w)?
    };
    assert!(!y.requires_grad() && x.mm(&w)?.requires_grad());
    // A change is seen.
    {
        let _off = keyway::no_grad();
        w.fill_(2.0)?;
    }
    assert_eq!(x.mm(&w)?.to_vec::<bf16>()?, x.mm(&Tensor::full((8, 8), 2.0)?)?.to_vec::<bf16>()?);
    Ok(())
}

#[test]
fn backward_is_in_the_dtypes_of_forward() -> keyway::Result<()> {
    let w = Tensor::randn((4, 4))?.requires_grad_(true)?;
    let loss = |w: &Tensor| w.mul(w)?.sum_all();
    let of = |loss: Tensor| -> keyway::Result<Vec<f32>> {
        w.zero_grad();
        loss.backward()?;
        w.grad().unwrap().to_vec()
    };
    let expected = of(loss(&w)?.mm_free(&w)?)?;
    let made = loss(&w)?.mm_free(&w)?;
    let _guard = autocast(DType::F16)?;
    assert_eq!(of(made)?, expected);
    Ok(())
}

/// A product in f32 whose gradient is products, too.
trait MmFree {
    fn mm_free(&self, w: &Tensor) -> keyway::Result<Tensor>;
}

impl MmFree for Tensor {
    fn mm_free(&self, w: &Tensor) -> keyway::Result<Tensor> {
        let _off = autocast_off();
        self.add(&w.mm(w)?.sum_all()?)
    }
}

#[test]
fn a_checkpoint_runs_as_at_first() -> keyway::Result<()> {
    let w = Tensor::randn((6, 6))?.requires_grad_(true)?;
    let x = Tensor::randn((2, 6))?;
    let body = {
        let w = w.clone();
        move |inputs: &[Tensor]| Ok(vec![inputs[0].mm(&w)?.relu()?.mm(&w)?])
    };
    let grad = |made: Tensor| -> keyway::Result<Vec<f32>> {
        w.zero_grad();
        made.sum_all()?.backward()?;
        w.grad().unwrap().to_vec()
    };
    let (plain, checked) = {
        let _guard = autocast(DType::BF16)?;
        (body(std::slice::from_ref(&x))?.remove(0), checkpoint(body, &[x])?.remove(0))
    };
    assert_eq!(checked.dtype(), DType::BF16);
    assert_eq!(grad(checked)?, grad(plain)?);
    Ok(())
}

#[test]
fn modules_train_in_mixed_precision() -> keyway::Result<()> {
    let images = Tensor::randn((2, 3, 6, 6))?;
    let tokens = Tensor::randn((2, 5, 8))?;
    let conv = Conv2d::new(3, 4, 3)?;
    let norm = BatchNorm2d::new(4)?;
    let (linear, layer) = (Linear::new(8, 8)?, LayerNorm::new(8)?);
    let attention = MultiheadAttention::new(8, 2)?;
    for low in [DType::F16, DType::BF16] {
        let run = || -> keyway::Result<Tensor> {
            let image = norm.forward(&conv.forward(&images)?)?.relu()?.mean_all()?;
            let text = attention.forward(&layer.forward(&linear.forward(&tokens)?)?)?;
            image.add(&text.square()?.mean_all()?)
        };
        let expected = run()?.item::<f32>()?;
        let loss = {
            let _guard = autocast(low)?;
            run()?
        };
        let got = loss.to_dtype(DType::F32)?.item::<f32>()?;
        assert!((got - expected).abs() < 0.03 * expected.abs(), "{got} {expected}");
        loss.backward()?;
        let modules: [&dyn Module; 5] = [&conv, &norm, &linear, &layer, &attention];
        for parameter in modules.iter().flat_map(|m| m.parameters()) {
            let grad = parameter.grad().unwrap();
            assert_eq!((parameter.dtype(), grad.dtype()), (DType::F32, DType::F32));
            parameter.zero_grad();
        }
        assert_eq!(norm.named_buffers().iter().filter(|(_, b)| b.dtype() == low).count(), 0);
    }
    Ok(())
}

fn weight(values: &[f32]) -> keyway::Result<(Tensor, Sgd)> {
    let w = Tensor::new(values)?.requires_grad_(true)?;
    let sgd = Sgd::new(vec![w.clone()], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    Ok((w, sgd))
}

#[test]
fn steps_that_are_not_finite_are_left_out() -> keyway::Result<()> {
    let options = GradScalerOptions { init_scale: 1024.0, growth_interval: 2, ..Default::default() };
    let mut scaler = GradScaler::new(options)?;
    let (w, mut sgd) = weight(&[1.0, 2.0])?;
    let mut seen = Vec::new();
    for factor in [1.0, f64::INFINITY, 0.5, f64::NAN, 0.25, 0.25] {
        sgd.zero_grad();
        scaler.scale(&w.mul(factor)?.sum_all()?)?.backward()?;
        let stepped = scaler.step(&mut sgd)?;
        scaler.update();
        seen.push((stepped, scaler.state().scale, w.to_vec::<f32>()?[0]));
    }
    let expected = [
        (true, 1024.0, 0.0),
        (false, 512.0, 0.0),
        (true, 512.0, -0.5),
        (false, 256.0, -0.5),
        (true, 256.0, -0.75),
        (true, 512.0, -1.0),
    ];
    assert_eq!(seen, expected);
    Ok(())
}

#[test]
fn gradients_are_divided_once() -> keyway::Result<()> {
    let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    let (w, mut sgd) = weight(&[3.0, 4.0])?;
    let (v, other) = weight(&[1.0])?;
    scaler.scale(&w.square()?.sum_all()?.mul(0.5)?)?.backward()?;
    scaler.scale(&v.sum_all()?)?.backward()?;
    assert!(scaler.unscale_(&sgd)? && scaler.unscale_(&other)?);
    refused(scaler.unscale_(&sgd), "once for each optimiser");
    assert_eq!(clip_grad_norm_(std::slice::from_ref(&w), 2.5)?.item::<f32>()?, 5.0);
    assert!(scaler.step(&mut sgd)?);
    refused(scaler.step(&mut sgd), "between two calls of `update`");
    assert!((w.to_vec::<f32>()?[0] - 1.5).abs() < 1e-5);
    scaler.update();
    assert_eq!(scaler.state(), GradScalerState { scale: 65536.0, growth_tracker: 1 });
    // Updating without a step has no effect.
    scaler.update();
    assert_eq!(scaler.state().growth_tracker, 1);
    Ok(())
}

#[test]
fn what_a_scaler_refuses() -> keyway::Result<()> {
    let new = |change: fn(&mut GradScalerOptions)| {
        let mut options = GradScalerOptions::default();
        change(&mut options);
        GradScaler::new(options)
    };
    refused(new(|o| o.init_scale = 0.0), "init_scale");
    refused(new(|o| o.init_scale = f64::NAN), "init_scale");
    refused(new(|o| o.growth_factor = 1.0), "growth_factor");
    refused(new(|o| o.backoff_factor = 1.0), "backoff_factor");
    refused(new(|o| o.growth_interval = 0), "growth_interval");
    let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    refused(scaler.set_state(GradScalerState { scale: f64::INFINITY, growth_tracker: 0 }), "scale");
    refused(new(|o| o.init_scale = 1e39), "the largest f32");
    let (_, mut early) = weight(&[1.0])?;
    refused(scaler.step(&mut early), "call `backward` on the result of `scale` first");
    let w = Tensor::ones_with(2, DType::F16)?.requires_grad_(true)?;
    let sgd = Sgd::new(vec![w.clone()], SgdOptions { lr: 1.0, ..SgdOptions::default() })?;
    w.sum_all()?.backward()?;
    refused(scaler.unscale_(&sgd), "keep the parameters in f32");
    Ok(())
}

/// The loss of a small net falls as in f32, also where gradients would be 0 in f16 without the scaler.
#[test]
fn f16_with_a_scaler_learns_what_f32_learns() -> keyway::Result<()> {
    let x = Tensor::randn((32, 6))?;
    let target = (x.narrow(1, 0, 1)?.mul(2.0)? + 1.0)?;
    let train = |low: Option<DType>| -> keyway::Result<f32> {
        let layers = || Ok::<_, keyway::Error>((Linear::new(6, 16)?, Linear::new(16, 1)?));
        let (first, second) = rng::with_generator(&Generator::new(7), layers)?;
        let parameters = [first.parameters(), second.parameters()].concat();
        let mut adam = AdamW::new(parameters, AdamWOptions { lr: 0.02, ..AdamWOptions::default() })?;
        let mut scaler = GradScaler::new(GradScalerOptions::default())?;
        let mut last = 0.0;
        for _ in 0..60 {
            adam.zero_grad();
            let loss = {
                let _guard = low.map(autocast).transpose()?;
                // A factor that takes unscaled gradients of f16 to 0.
                second.forward(&first.forward(&x)?.relu()?)?.mse_loss(&target)?.mul(1e-6)?
            };
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut adam)?;
            scaler.update();
            last = loss.item::<f32>()? * 1e6;
        }
        Ok(last)
    };
    let (wide, half) = (train(None)?, train(Some(DType::F16))?);
    assert!(half < 0.3 && (half - wide).abs() < 0.1 * wide + 0.02, "{half} {wide}");
    Ok(())
}
