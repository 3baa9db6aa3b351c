//! Cases of gradients, including the forward pass, and of ops with a single launch where other libraries compose several.

use super::{Call, Case, Sizes, call, case};
use keyway::autograd::{self, BackwardOptions};
use keyway::nn::MaxPoolOptions;
use keyway::{DType, Device, MemoryFormat, Tensor};

/// A call that computes the gradients of `leaves` from ones.
fn gradients(
    leaves: Vec<Tensor>,
    forward: impl Fn(&[Tensor]) -> keyway::Result<Tensor> + 'static,
) -> keyway::Result<Call> {
    let leaves: Vec<Tensor> =
        leaves.into_iter().map(|leaf| leaf.requires_grad_(true)).collect::<keyway::Result<_>>()?;
    let grad = forward(&leaves)?.detach().ones_like()?;
    call(move || {
        let made = forward(&leaves)?;
        let options = BackwardOptions { gradients: Some(vec![grad.clone()]), ..Default::default() };
        autograd::grad(&[&made], &leaves.iter().collect::<Vec<_>>(), options).map(drop)
    })
}

/// The cases.
pub fn cases(device: Device, sizes: Sizes) -> Vec<Case> {
    let mut all = Vec::new();
    let shape = [sizes.images, 64, sizes.image, sizes.image];
    let bytes = (shape.iter().product::<usize>() * 4) as f64;
    for (end, format) in [("", MemoryFormat::Contiguous), ("_last", MemoryFormat::ChannelsLast)] {
        let images = move || Tensor::rand_with(shape, device)?.to(format)?.copy();
        let norm = |t: &[Tensor]| t[0].batch_norm(None, Some(&t[1]), Some(&t[2]), true, 0.1, 1e-5);
        let channels = move || Tensor::ones_with([64], device);
        if end == "_last" {
            all.push(case("batch_norm_last", ("byte", 3.0 * bytes), move || {
                let of = [images()?, channels()?, channels()?];
                call(move || norm(&of))
            }));
        }
        all.push(case(format!("batch_norm{end}_backward"), ("byte", 8.0 * bytes), move || {
            gradients(vec![images()?, channels()?, channels()?], norm)
        }));
        all.push(case(format!("max_pool{end}_backward"), ("byte", 3.0 * bytes), move || {
            gradients(vec![images()?], |t| t[0].max_pool2d(MaxPoolOptions::new(3).stride(2).padding(1)))
        }));
    }
    let side = sizes.side;
    let matrix = move |columns: usize| Tensor::rand_with([side * side / columns, columns], device);
    let once = (4 * side * side) as f64;
    all.push(case("softmax_short_backward", ("byte", 5.0 * once), move || {
        gradients(vec![matrix(512)?], |t| t[0].softmax(-1))
    }));
    all.push(case("rms_norm_short", ("byte", 2.0 * once), move || {
        let (a, weight) = (matrix(512)?, Tensor::ones_with([512], device)?);
        call(move || a.rms_norm_with([512], Some(&weight), 1e-5))
    }));
    all.push(case("rms_norm_short_backward", ("byte", 5.0 * once), move || {
        gradients(vec![matrix(512)?, Tensor::ones_with([512], device)?], |t| {
            t[0].rms_norm_with([512], Some(&t[1]), 1e-5)
        })
    }));
    all.push(case("layer_norm_short_backward", ("byte", 5.0 * once), move || {
        let ones = || Tensor::ones_with([512], device);
        gradients(vec![matrix(512)?, ones()?, ones()?], |t| t[0].layer_norm([512], Some(&t[1]), Some(&t[2])))
    }));
    let (heads, length) = (sizes.heads, sizes.length);
    all.push(case(
        "attention_backward.f32",
        ("flop", (4 * heads * length * length * 64) as f64 * 14.0),
        move || {
            let operand = || Tensor::rand_with([4, heads, length, 64], (DType::F32, device));
            gradients(vec![operand()?, operand()?, operand()?], |t| {
                t[0].scaled_dot_product_attention(&t[1], &t[2])
            })
        },
    ));
    all.push(case("cummax", ("byte", 4.0 * once), move || {
        let a = matrix(side)?;
        call(move || a.cummax(1))
    }));
    all.push(case("logcumsumexp", ("byte", 2.0 * once), move || {
        let a = matrix(side)?;
        call(move || a.logcumsumexp(1))
    }));
    all.push(case("var", ("byte", once), move || {
        let a = matrix(side)?;
        call(move || a.var(..))
    }));
    all.push(case("lgamma", ("byte", 2.0 * once), move || {
        let a = matrix(side)?;
        call(move || a.lgamma())
    }));
    all.push(case("digamma", ("byte", 2.0 * once), move || {
        let a = matrix(side)?;
        call(move || a.digamma())
    }));
    all
}
