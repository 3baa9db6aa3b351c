//! Cases of networks and of indexing, beyond memory traffic and matrix products.

use super::{Case, Sizes, call, case};
use keyway::autograd::{self, BackwardOptions};
use keyway::nn::{AttentionOptions, ConvOptions};
use keyway::{DType, Device, MemoryFormat, Tensor};

/// Images, whose sizes are `[images, channels, side, side]`.
fn images(sizes: Sizes) -> [usize; 4] {
    [sizes.images, 64, sizes.image, sizes.image]
}

/// The cases.
pub fn cases(device: Device, sizes: Sizes) -> Vec<Case> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        for (name, format) in [("conv", MemoryFormat::Contiguous), ("conv_last", MemoryFormat::ChannelsLast)]
        {
            let [n, channels, side, _] = images(sizes);
            let flops = 2.0 * (n * side * side * channels * channels * 9) as f64;
            all.push(case(format!("{name}.{dtype}"), ("flop", flops), move || {
                let x = Tensor::rand_with(images(sizes), (dtype, device))?.to(format)?;
                let w = Tensor::rand_with([channels, channels, 3, 3], (dtype, device))?.to(format)?;
                call(move || x.conv2d_with(&w, None, ConvOptions::default().padding(1)))
            }));
            // Three products for one, and the bias is in both passes.
            all.push(case(format!("{name}_backward.{dtype}"), ("flop", 3.0 * flops), move || {
                let leaf = |t: Tensor| t.to(format)?.requires_grad_(true);
                let x = leaf(Tensor::rand_with(images(sizes), (dtype, device))?)?;
                let w = leaf(Tensor::rand_with([channels, channels, 3, 3], (dtype, device))?)?;
                let b = Tensor::rand_with([channels], (dtype, device))?.requires_grad_(true)?;
                let grad = Tensor::rand_with(images(sizes), (dtype, device))?.to(format)?;
                call(move || {
                    let out = x.conv2d_with(&w, Some(&b), ConvOptions::default().padding(1))?;
                    let options =
                        BackwardOptions { gradients: Some(vec![grad.clone()]), ..Default::default() };
                    autograd::grad(&[&out], &[&x, &w, &b], options).map(drop)
                })
            }));
        }
    }
    let bytes = (images(sizes).iter().product::<usize>() * 4) as f64;
    all.push(case("batch_norm", ("byte", 3.0 * bytes), move || {
        let x = Tensor::rand_with(images(sizes), device)?;
        let channels = |ones: bool| {
            if ones { Tensor::ones_with([64], device) } else { Tensor::zeros_with([64], device) }
        };
        let (mean, var, w, b) = (channels(false)?, channels(true)?, channels(true)?, channels(false)?);
        call(move || x.batch_norm(Some((&mean, &var)), Some(&w), Some(&b), true, 0.1, 1e-5))
    }));
    all.push(case("max_pool", ("byte", 1.25 * bytes), move || {
        let x = Tensor::rand_with(images(sizes), device)?;
        call(move || x.max_pool2d(2))
    }));
    // Half as many heads of 128 elements.
    for (name, heads, width, causal, backward) in [
        ("attention_causal.f16", sizes.heads, 64, true, false),
        ("attention_wide.f16", sizes.heads / 2, 128, false, false),
        ("attention_wide_causal.f16", sizes.heads / 2, 128, true, false),
        ("attention_backward.f16", sizes.heads, 64, false, true),
    ] {
        let length = sizes.length;
        // The backward pass has five products for the forward pass's two; a causal one computes half of them.
        let flops = (4 * heads * length * length * width) as f64 * if backward { 14.0 } else { 4.0 }
            / if causal { 2.0 } else { 1.0 };
        all.push(case(name, ("flop", flops), move || {
            let make = || {
                Tensor::rand_with([4, heads, length, width], (DType::F16, device))?.requires_grad_(backward)
            };
            let (q, k, v) = (make()?, make()?, make()?);
            let grad = Tensor::ones_with([4, heads, length, width], (DType::F16, device))?;
            call(move || {
                let options = AttentionOptions { is_causal: causal, ..AttentionOptions::default() };
                let out = q.scaled_dot_product_attention_with(&k, &v, options)?;
                if !backward {
                    return Ok(());
                }
                let options = BackwardOptions { gradients: Some(vec![grad.clone()]), ..Default::default() };
                autograd::grad(&[&out], &[&q, &k, &v], options).map(drop)
            })
        }));
    }
    let (rows, side) = (sizes.side * sizes.side / 512, sizes.side);
    let matrix = move |columns: usize| Tensor::rand_with([side * side / columns, columns], device);
    let both = ("byte", (2 * 4 * side * side) as f64);
    all.push(case("softmax_short", both, move || {
        let a = matrix(512)?;
        call(move || a.softmax(-1))
    }));
    all.push(case("layer_norm_short", both, move || {
        let (a, weight) = (matrix(512)?, Tensor::ones_with([512], device)?);
        call(move || a.layer_norm([512], Some(&weight), Some(&weight)))
    }));
    all.push(case("cumsum", both, move || {
        let a = matrix(side)?;
        call(move || a.cumsum(1))
    }));
    all.push(case("argmax", ("byte", both.1 / 2.0), move || {
        let a = matrix(side)?;
        call(move || a.argmax(1))
    }));
    all.push(case("add_broadcast", both, move || {
        let (a, b) = (matrix(side)?, Tensor::rand_with([side], device)?);
        call(move || a.add(&b))
    }));
    all.push(case("index_select", both, move || {
        let (a, index) = (matrix(512)?, Tensor::randint_with(0, rows as i64, [rows], (DType::I64, device))?);
        call(move || a.index_select(0, &index))
    }));
    all.push(case("cat", both, move || {
        let (a, b) =
            (Tensor::rand_with([side, side / 2], device)?, Tensor::rand_with([side, side / 2], device)?);
        call(move || Tensor::cat(&[&a, &b], 1))
    }));
    all.push(case("sort", ("byte", (12 * side * 128) as f64), move || {
        let a = Tensor::rand_with([side * 128], device)?;
        call(move || a.sort(0))
    }));
    all.push(case("topk", ("byte", (4 * side * 128) as f64), move || {
        let a = Tensor::rand_with([128, side], device)?;
        call(move || a.topk(10, 1))
    }));
    all
}
