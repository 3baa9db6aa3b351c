//! What PyTorch has under a name of its own, and what is a line of other ops here.

use crate::table::section;
use keyway::nn::functional as F;
use keyway::prelude::*;

section! {
    composed "A line of other ops"
    "x = torch.tensor([[-2., 0.5], [1., 8.]]); y = torch.tensor([[0.25, 0.75], [1., 2.]]); p = torch.tensor([0.25, 0.75]); mask = x > 0" {
        let x = Tensor::new([[-2.0f32, 0.5], [1.0, 8.0]])?;
        let y = Tensor::new([[0.25f32, 0.75], [1.0, 2.0]])?;
        let p = Tensor::new([0.25f32, 0.75])?;
        let mask = x.gt(0)?;
    }
    "F.relu6(x)" => { x.clamp(0, 6)? };
    "F.hardtanh(x)" => { x.clamp(-1, 1)? };
    "F.hardsigmoid(x)" => { ((&x / 6.0)? + 0.5)?.clamp(0, 1)? };
    "F.logsigmoid(x)" => { x.neg()?.softplus()?.neg()? };
    "F.softsign(x)" => { (&x / (x.abs()? + 1.0))? };
    "F.softmin(x, dim=0)" => { x.neg()?.softmax(0)? };
    "F.tanhshrink(x)" => { (&x - x.tanh())? };
    "F.hardshrink(x)" => { x.abs()?.gt(0.5)?.where_cond(&x, 0.0)? };
    "F.threshold(x, 0.1, 20.)" => { x.gt(0.1)?.where_cond(&x, 20.0)? };
    "torch.exp2(x)" => { x.rpow(2)? };
    "torch.erfc(x)" => { x.erf()?.rsub(1)? };
    "torch.frac(x)" => { (&x - x.trunc())? };
    "torch.logit(p)" => { (&p / p.rsub(1))?.log()? };
    "torch.rad2deg(x)" => { (&x * 1f64.to_degrees())? };
    "torch.float_power(x, 2)" => { x.to_dtype(DType::F64)?.pow(2)? };
    "torch.dist(x, y)" => { (&x - &y)?.norm_all(2.0)? };
    "torch.vdot(p, p)" => { p.dot(&p)? };
    "torch.linalg.multi_dot([x, y, x])" => { x.matmul(&y)?.matmul(&x)? };
    "torch.diag(p)" => { (Tensor::eye(2)? * &p)? } "of a vector";
    "torch.hstack([x, y])" => { Tensor::cat(&[&x, &y], 1)? };
    "torch.vstack([x, y])" => { Tensor::cat(&[&x, &y], 0)? };
    "torch.rot90(x)" => { x.transpose(0, 1)?.flip(0)? };
    "torch.broadcast_tensors(x, p)" => { vec![x.clone(), p.expand_as(&x)?] };
    "torch.quantile(p, 0.5)" => { let sorted = p.sort(0)?.0; sorted.i(0)?.lerp(&sorted.i(1)?, 0.5)? };
    "torch.msort(x)" => { x.sort(0)?.0 };
    "x.masked_scatter(mask, torch.ones(3))" => { x.index_put(&[Some(&mask)], &Tensor::ones(3)?, false)? };
    "torch.multinomial(p, 1)" => { (p.log()? - p.rand_like()?.log()?.neg()?.log())?.argmax_keepdim(-1)? } "Gumbel's trick: logarithms need not be of sum 1";
    "torch.normal(x, y)" => { (&x + (&y * x.randn_like()))? };
    "F.huber_loss(x, y)" => { F::smooth_l1_loss(&x, &y)? } "of `delta` 1";
    "F.pairwise_distance(x, y)" => { (&x - &y)?.norm(2.0, 1)? };
    "F.soft_margin_loss(x, torch.ones(2, 2))" => { x.neg()?.softplus()?.mean(..)? };
    "F.poisson_nll_loss(x, y)" => { (x.exp()? - (&x * &y))?.mean(..)? };
    "nn.ZeroPad2d(1)(x[None])" => { x.unsqueeze(0)?.pad((1, 1, 1, 1))? };
    "x.is_cuda" => { x.device().name() == "cuda" };
    "x.apply_(lambda v: v + 1)" => { let mut x = x; x.as_slice_mut::<f32>()?.iter_mut().for_each(|v| *v += 1.0); x } "of a tensor that nobody else holds";
}
