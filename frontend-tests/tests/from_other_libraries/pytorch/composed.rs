//! Short formulas, and what PyTorch has under a name of its own and is a line of other ops here.

use crate::table::section;
use keyway::nn::{self, functional as F};
use keyway::prelude::*;

section! {
    named "Short formulas"
    "x = torch.tensor([[-2., 0.5], [1., 8.]]); y = torch.tensor([[0.25, 0.75], [1., 2.]]); p = torch.tensor([0.25, 0.75]); mask = x > 0" {
        let x = Tensor::new([[-2.0f32, 0.5], [1.0, 8.0]])?;
        let y = Tensor::new([[0.25f32, 0.75], [1.0, 2.0]])?;
        let p = Tensor::new([0.25f32, 0.75])?;
        let mask = x.gt(0)?;
    }
    "F.relu6(x)" => { F::relu6(&x)? };
    "F.hardtanh(x)" => { F::hardtanh(&x)? };
    "F.hardsigmoid(x)" => { F::hardsigmoid(&x)? };
    "F.logsigmoid(x)" => { F::logsigmoid(&x)? };
    "F.softsign(x)" => { F::softsign(&x)? };
    "F.tanhshrink(x)" => { F::tanhshrink(&x)? };
    "F.hardshrink(x)" => { F::hardshrink(&x)? };
    "F.threshold(x, 0.1, 20.)" => { F::threshold(&x, 0.1, 20.0)? };
    "torch.exp2(x)" => { x.exp2()? };
    "torch.frac(x)" => { x.frac()? };
    "torch.logit(p)" => { p.logit()? };
    "torch.logit(x, 1e-3)" => { x.logit_with(1e-3)? };
    "torch.rad2deg(x)" => { x.rad2deg()? };
    "torch.diag(p)" => { p.diag()? };
    "torch.hstack([x, y])" => { Tensor::hstack(&[&x, &y])? };
    "torch.vstack([x, y])" => { Tensor::vstack(&[&x, &y])? };
    "torch.rot90(x)" => { x.rot90()? };
    "torch.quantile(p, 0.5)" => { p.quantile_all(0.5)? };
    "x.masked_scatter(mask, torch.ones(3))" => { x.masked_scatter(&mask, &Tensor::ones(3)?)? };
    "torch.multinomial(p, 1)" => { p.multinomial(1)? };
    "F.huber_loss(x, y)" => { F::huber_loss(&x, &y)? };
    "F.hardtanh(x, 0, 2)" => { x.hardtanh_with(0.0, 2.0)? };
    "F.hardshrink(x, 1.5)" => { x.hardshrink_with(1.5)? };
    "torch.deg2rad(x)" => { x.deg2rad()? };
    "torch.fmax(x, y)" => { x.fmax(&y)? };
    "torch.fmin(x, y)" => { x.fmin(&y)? };
    "torch.signbit(x)" => { x.signbit()? };
    "torch.isposinf(x)" => { x.isposinf()? };
    "torch.isneginf(x)" => { x.isneginf()? };
    "torch.heaviside(x, p)" => { x.heaviside(&p)? };
    "torch.diag(x)" => { x.diag()? };
    "torch.diag_embed(x)" => { x.diag_embed()? };
    "torch.dstack([x, y])" => { Tensor::dstack(&[&x, &y])? };
    "torch.fliplr(x)" => { x.fliplr()? };
    "torch.flipud(x)" => { x.flipud()? };
    "torch.select_scatter(x, p, 0, 1)" => { x.select_scatter(&p, 0, 1)? };
    "torch.slice_scatter(x, y[:1], 0, 1, 2)" => { x.slice_scatter(&y.i(..1)?, 0, Some(1), Some(2), 1)? } "`narrow_scatter` has a start and a length";
    "torch.diagonal_scatter(x, p)" => { x.diagonal_scatter(&p)? };
    "torch.kthvalue(x, 2).values" => { x.kthvalue(2, -1)?.0 };
    "torch.sinc(x)" => { x.sinc()? };
    "torch.cov(x)" => { x.cov()? };
    "torch.cov(x, correction=0)" => { x.cov_with(0)? };
    "torch.corrcoef(y)" => { y.corrcoef()? };
    "torch.trapezoid(x)" => { x.trapezoid(-1)? };
    "torch.trapezoid(x, dx=0.5, dim=0)" => { x.trapezoid_with(0.5, 0)? };
    "torch.trapezoid(x, p)" => { x.trapezoid_with(&p, -1)? };
    "torch.cumulative_trapezoid(x)" => { x.cumulative_trapezoid(-1)? };
    "torch.cumulative_trapezoid(x, p)" => { x.cumulative_trapezoid_with(&p, -1)? };
    "torch.nanmedian(x, 1).values" => { x.nanmedian(1)?.0 };
    "torch.mode(x, 1).values" => { x.mode(1)?.0 };
    "torch.histc(x, 3)" => { x.histc(3)? };
    "torch.histc(x, 3, -1, 2)" => { x.histc_with(3, -1.0, 2.0)? };
    "torch.histogram(x, 3).hist" => { x.histogram(3)?.0 };
    "torch.histogram(x, p, density=True).hist" => { x.histogram_between(&p, None, true)? };
    "torch.renorm(x, 2, 0, 1.5)" => { x.renorm(2.0, 0, 1.5)? };
    "torch.float_power(x, 2)" => { x.float_power(2)? };
    "torch.atleast_3d(x)" => { x.atleast_3d()? };
    "torch.broadcast_tensors(x, p)" => { Tensor::broadcast_tensors(&[&x, &p])? };
    "torch.broadcast_shapes((2, 1), (3,))" => { Tensor::broadcast_shapes((2, 1), 3)? } "of two shapes";
    "F.pdist(x)" => { x.pdist()? };
    "F.huber_loss(x, y, delta=0.5)" => { x.huber_loss_with(&y, 0.5, nn::Reduction::Mean)? };
}

section! {
    composed "A line of other ops"
    "x = torch.tensor([[-2., 0.5], [1., 8.]]); y = torch.tensor([[0.25, 0.75], [1., 2.]]); p = torch.tensor([0.25, 0.75]); mask = x > 0" {
        let x = Tensor::new([[-2.0f32, 0.5], [1.0, 8.0]])?;
        let y = Tensor::new([[0.25f32, 0.75], [1.0, 2.0]])?;
        let p = Tensor::new([0.25f32, 0.75])?;
        let mask = x.gt(0)?;
    }
    "F.softmin(x, dim=0)" => { x.neg()?.softmax(0)? };
    "torch.cumsum(F.pad(x, (1, 0)), -1)" => { x.constant_pad(&[1, 0], 0)?.cumsum(-1)? } "the `cumulative_sum(include_initial=True)` of the Array API";
    "torch.diff(x, prepend=y)" => { Tensor::cat(&[&y, &x], -1)?.diff(-1)? };
    "torch.dist(x, y)" => { (&x - &y)?.norm_all()? };
    "torch.vdot(p, p)" => { p.vdot(&p)? };
    "torch.msort(x)" => { x.sort(0)?.0 };
    "torch.normal(x, y)" => { (&x + (&y * x.randn_like()))? };
    "nn.ZeroPad2d(1)(x[None])" => { x.unsqueeze(0)?.pad((1, 1, 1, 1))? };
    "x.is_cuda" => { x.is_cuda() };
    "x.apply_(lambda v: v + 1)" => { let mut x = x; x.as_slice_mut::<f32>()?.iter_mut().for_each(|v| *v += 1.0); x } "of a tensor that nobody else holds";
}
