//! Arithmetic, reductions and linear algebra.

use crate::table::section;
use keyway::prelude::*;
use keyway::tensor::Rounding;

section! {
    pointwise "Arithmetic"
    "a = torch.tensor([1., -2., 4.]); b = torch.tensor([2., 3., 0.5]); n = torch.tensor([6, 7, 9])" {
        let a = Tensor::new([1.0f32, -2.0, 4.0])?;
        let b = Tensor::new([2.0f32, 3.0, 0.5])?;
        let n = Tensor::new([6i64, 7, 9])?;
    }
    "a + b" => { (&a + &b)? } "an operator gives a `Result`";
    "a - 1" => { (&a - 1)? };
    "2 * a" => { (2 * &a)? };
    "(a + b) * 2" => { ((&a + &b)? * 2)? };
    "a * (a + b)" => { (&a * (&a + &b))? } "a `Result` may stand on the right";
    "a / b" => { (&a / &b)? };
    "n // 4" => { n.floor_divide(4)? };
    "n % 4" => { (&n % 4)? } "of the sign of the divisor, as in Python";
    "a ** 2" => { a.pow(2)? };
    "2 ** a" => { a.rpow(2)? };
    "-a" => { (-&a)? };
    "a += b" => { a.add_(&b)? };
    "~(a > 0)" => { a.gt(0)?.logical_not()? };
    "n & 3" => { n.bitwise_and(3)? };
    "n << 1" => { n.bitwise_left_shift(1)? };
    "torch.add(a, b, alpha=2)" => { a.add_with(&b, 2)? };
    "torch.sub(a, b)" => { a.sub(&b)? };
    "torch.rsub(a, b)" => { a.rsub(&b)? };
    "torch.subtract(a, b)" => { a.sub(&b)? };
    "torch.multiply(a, b)" => { a.mul(&b)? };
    "torch.divide(a, b)" => { a.div(&b)? };
    "torch.true_divide(a, b)" => { a.div(&b)? };
    "torch.div(a, b, rounding_mode='floor')" => { a.div_with(&b, Rounding::Floor)? };
    "torch.add(a, b, out=b)" => { let mut out = b.copy()?; a.add_out(&b, &mut out)?; out };
    "a.mul_(b)" => { a.mul_(&b)? };
    "torch.remainder(a, b)" => { a.remainder(&b)? };
    "torch.fmod(a, b)" => { a.fmod(&b)? };
    "torch.abs(a)" => { a.abs()? };
    "torch.absolute(a)" => { a.abs()? };
    "torch.negative(a)" => { a.neg()? };
    "torch.sign(a)" => { a.sign()? };
    "torch.sqrt(b)" => { b.sqrt()? };
    "torch.rsqrt(b)" => { b.rsqrt()? };
    "torch.square(a)" => { a.square()? };
    "torch.reciprocal(b)" => { b.reciprocal()? };
    "torch.exp(a)" => { a.exp()? };
    "torch.expm1(a)" => { a.expm1()? };
    "torch.log(b)" => { b.log()? };
    "torch.log1p(b)" => { b.log1p()? };
    "torch.log2(b)" => { b.log2()? };
    "torch.logaddexp(a, b)" => { a.logaddexp(&b)? };
    "torch.xlogy(a, b)" => { a.xlogy(&b)? };
    "torch.sin(a)" => { a.sin()? };
    "torch.atan2(a, b)" => { a.atan2(&b)? };
    "torch.arctan2(a, b)" => { a.atan2(&b)? };
    "torch.arcsinh(a)" => { a.asinh()? };
    "torch.tanh(a)" => { a.tanh()? };
    "torch.erf(a)" => { a.erf()? };
    "torch.erfc(a)" => { a.erfc()? };
    "torch.gcd(n, torch.tensor(6))" => { n.gcd(6)? } "a number may stand on the right";
    "torch.lcm(n, torch.tensor(6))" => { n.lcm(6)? };
    "torch.special.expit(a)" => { a.sigmoid()? };
    "torch.floor(a)" => { a.floor()? };
    "torch.round(a)" => { a.round()? };
    "torch.fix(a)" => { a.trunc()? };
    "torch.clamp(a, 0, 1)" => { a.clamp(0, 1)? };
    "torch.clip(a, 0, 1)" => { a.clamp(0, 1)? };
    "torch.clamp(a, min=0)" => { a.clamp_min(0)? };
    "torch.maximum(a, b)" => { a.maximum(&b)? };
    "torch.minimum(a, b)" => { a.minimum(&b)? };
    "torch.lerp(a, b, 0.5)" => { a.lerp(&b, 0.5)? };
    "torch.addcmul(a, a, b, value=2)" => { a.addcmul_with(&a, &b, 2)? };
    "torch.addcdiv(a, a, b)" => { a.addcdiv(&a, &b)? };
    "torch.hypot(a, b)" => { a.hypot(&b)? };
    "torch.copysign(a, b)" => { a.copysign(&b)? };
    "torch.nan_to_num(a)" => { a.nan_to_num()? };
    "a == b" => { a.eq(&b)? } "Rust's `==` cannot give a tensor";
    "a != b" => { a.ne(&b)? };
    "a < b" => { a.lt(&b)? };
    "a >= 0" => { a.ge(0)? };
    "(a > 0) & (b > 1)" => { a.gt(0)?.logical_and(&b.gt(1)?)? };
    "(a > 0) | (b > 1)" => { a.gt(0)?.logical_or(&b.gt(1)?)? };
    "torch.greater(a, b)" => { a.gt(&b)? };
    "torch.equal(a, b)" => { a.equal(&b)? };
    "torch.allclose(a, b)" => { a.allclose(&b)? };
    "torch.allclose(a, b, rtol=1e-3, atol=1e-4)" => { a.allclose_with(&b, 1e-3, 1e-4, false)? };
    "torch.isclose(a, b)" => { a.isclose(&b)? };
    "torch.isnan(a)" => { a.isnan()? };
    "torch.isinf(a)" => { a.isinf()? };
    "torch.isfinite(a)" => { a.isfinite()? };
    "torch.logical_not(a)" => { a.logical_not()? };
    "a.copy_(b)" => { a.copy_(&b)? };
    "a.fill_(3.)" => { a.fill_(3.0)? };
    "a.zero_()" => { a.zero_()? };
}

section! {
    reduce "Reductions"
    "x = torch.arange(24.).reshape(2, 3, 4)" { let x = Tensor::arange(0.0, 24.0)?.reshape((2, 3, 4))?; }
    "torch.sum(x)" => { x.sum(..)? } "`sum_all` does the same";
    "torch.sum(x, dim=1)" => { x.sum(1)? };
    "torch.sum(x, dim=(0, 2))" => { x.sum((0, 2))? };
    "torch.sum(x, dim=1, keepdim=True)" => { x.sum_keepdim(1)? } "every reduction has the form `_keepdim`";
    "x.mean()" => { x.mean(..)? };
    "x.mean(-1)" => { x.mean(-1)? };
    "x.prod(2)" => { x.prod(2)? };
    "x.std()" => { x.std(..)? };
    "x.var(1, correction=0)" => { x.var_with(1, 0.0, false)? };
    "torch.var_mean(x, 1)" => { x.var_mean(1)? };
    "torch.std_mean(x, 1)" => { x.std_mean(1)? };
    "x.max()" => { x.max_all()? };
    "x.min()" => { x.min_all()? };
    "x.max(1)" => { x.max(1)? } "values and indices";
    "x.min(1)" => { x.min(1)? };
    "x.amax((1, 2))" => { x.amax((1, 2))? };
    "x.amin((1, 2))" => { x.amin((1, 2))? };
    "torch.aminmax(x)" => { x.aminmax(..)? };
    "x.argmax()" => { x.argmax_all()? };
    "x.argmax(dim=1)" => { x.argmax(1)? };
    "x.argmin(dim=1, keepdim=True)" => { x.argmin_keepdim(1)? };
    "x.median()" => { x.median_all()? };
    "x.median(1)" => { x.median(1)? };
    "torch.all(x > 3)" => { x.gt(3)?.all(..)? };
    "torch.any(x > 3, dim=1)" => { x.gt(3)?.any(1)? };
    "torch.count_nonzero(x, 1)" => { x.count_nonzero(1)? };
    "torch.logsumexp(x, 1)" => { x.logsumexp(1)? };
    "torch.nansum(x)" => { x.nansum(..)? };
    "torch.nanmean(x, 1)" => { x.nanmean(1)? };
    "torch.norm(x)" => { x.norm_all()? };
    "torch.linalg.vector_norm(x, 2, dim=1)" => { x.norm(1)? };
    "torch.cumsum(x, 1)" => { x.cumsum(1)? };
    "torch.cumprod(x, 1)" => { x.cumprod(1)? };
    "torch.diff(x)" => { x.diff(-1)? };
}

section! {
    linalg "Linear algebra"
    "a = torch.arange(6.).reshape(2, 3); b = torch.arange(12.).reshape(3, 4); s = torch.ones(2, 2, 2); v = torch.tensor([1., 2., 3.])" {
        let a = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
        let b = Tensor::arange(0.0, 12.0)?.reshape((3, 4))?;
        let s = Tensor::ones((2, 2, 2))?;
        let v = Tensor::new([1.0f32, 2.0, 3.0])?;
    }
    "a @ b" => { a.matmul(&b)? };
    "torch.matmul(a, v)" => { a.matmul(&v)? };
    "torch.mm(a, b)" => { a.mm(&b)? };
    "torch.bmm(s, s)" => { s.bmm(&s)? };
    "torch.mv(a, v)" => { a.mv(&v)? };
    "torch.dot(v, v)" => { v.dot(&v)? };
    "torch.inner(v, v)" => { v.dot(&v)? };
    "torch.outer(v, v)" => { v.outer(&v)? };
    "torch.ger(v, v)" => { v.outer(&v)? };
    "torch.addmm(torch.ones(4), a, b)" => { Tensor::ones(4)?.addmm(&a, &b)? };
    "torch.addmm(torch.ones(4), a, b, beta=2, alpha=3)" => { Tensor::ones(4)?.addmm_with(&a, &b, 2, 3)? };
    "torch.baddbmm(s, s, s)" => { s.baddbmm(&s, &s)? };
    "torch.einsum('ij,jk->ik', a, b)" => { Tensor::einsum("ij,jk->ik", &[&a, &b])? };
    "torch.tensordot(a, b, dims=1)" => { a.tensordot_inner(&b, 1)? };
    "torch.tensordot(a, b, dims=([1], [0]))" => { a.tensordot(&b, 1, 0)? };
    "torch.kron(a, a)" => { a.kron(&a)? };
    "torch.cross(v, v)" => { v.cross(&v)? };
    "torch.linalg.cross(v, v)" => { v.cross(&v)? };
    "torch.trace(a @ a.t())" => { a.matmul(&a.t()?)?.trace()? };
    "torch.cdist(a, a)" => { a.cdist(&a)? };
    "torch.linalg.norm(a)" => { a.norm_all()? };
    "torch.diag(a @ a.t())" => { a.matmul(&a.t()?)?.diagonal()? } "of a matrix";
}
