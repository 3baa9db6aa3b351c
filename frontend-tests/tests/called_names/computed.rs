//! Reductions, products and functions of each element.

use super::{Call, FAR, Table, b, f, l, leaf};
use keyway::Tensor;
use keyway::tensor::{Interpolation, Rounding};

pub fn reduced() -> Table {
    table! {
        sum: f(&[2]).sum(1), f(&[2]).sum((0, 0)), f(&[2]).sum_keepdim(-2), f(&[2]).sum(FAR);
        mean: f(&[2]).mean(1), l(&[2]).mean(0), l(&[2]).mean_all();
        prod: f(&[2]).prod(1);
        nansum: f(&[2]).nansum(1);
        nanmean: f(&[2]).nanmean(1);
        amax: f(&[2]).amax(1), f(&[0]).amax(0);
        amin: f(&[2]).amin(1);
        aminmax: f(&[2]).aminmax(1), f(&[2]).aminmax_keepdim(-2), f(&[0]).aminmax(0);
        max: f(&[2]).max(1), f(&[0]).max(0), f(&[2]).max_keepdim(FAR), f(&[0]).max_all();
        min: f(&[2]).min(1), f(&[0]).min(0), f(&[0]).min_all();
        argmax: f(&[2]).argmax(1), f(&[0]).argmax_all();
        argmin: f(&[2]).argmin(1), f(&[0]).argmin_all();
        all: f(&[2]).all(1);
        any: f(&[2]).any(1);
        count_nonzero: f(&[2]).count_nonzero(1);
        norm: f(&[2]).norm(1), l(&[2]).norm(0), f(&[2]).norm_with(-1.0, 1, false);
        var: f(&[2]).var(1), l(&[2]).var(0);
        std: f(&[2]).std(1), l(&[2]).std(0), f(&[2]).std_with(1, 0.0, true);
        var_mean: f(&[2]).var_mean(1), l(&[2]).var_mean(0);
        std_mean: f(&[2]).std_mean(1), l(&[2]).std_mean(0);
        logsumexp: f(&[2]).logsumexp(1), l(&[2]).logsumexp(2);
        median: f(&[2]).median(1), f(&[2]).median_keepdim(-2), b(&[2]).median(0), f(&[0]).median(0), l(&[0]).median_all(),
            f(&[2]).median(FAR);
        nanmedian: f(&[2]).nanmedian(1), f(&[2]).nanmedian_keepdim(-2), b(&[2]).nanmedian(0), f(&[0]).nanmedian(0),
            l(&[0]).nanmedian_all();
        mode: f(&[2]).mode(1), f(&[2]).mode_keepdim(-2), f(&[0]).mode(0);
        histc: l(&[2]).histc(2), f(&[2]).histc(0), f(&[2]).histc(FAR), f(&[2]).histc_with(2, 1.0, 0.0),
            f(&[2]).histc_with(2, 0.0, f64::INFINITY), f(&[2]).div(0.0).unwrap().histc(2);
        histogram: l(&[2]).histogram(2), f(&[2]).histogram(0), f(&[2]).histogram_with(2, Some((1.0, 0.0)), None, false),
            f(&[2]).histogram_with(2, None, Some(&f(&[3])), false), f(&[2]).histogram_with(2, None, Some(&l(&[2])), false);
        histogram_between: f(&[2]).histogram_between(&f(&[1]), None, false), f(&[2]).histogram_between(&l(&[2]), None, false),
            f(&[2]).histogram_between(&f(&[2]), Some(&f(&[3])), true);
        renorm: f(&[2]).renorm(2.0, 0, 1.0), l(&[2, 2]).renorm(2.0, 0, 1.0), f(&[2, 2]).renorm(2.0, 2, 1.0),
            f(&[2, 2]).renorm(0.0, 0, 1.0), f(&[2, 2]).renorm(2.0, 0, -1.0), f(&[2, 2]).renorm(2.0, 0, f64::NAN);
        renorm_: f(&[2]).renorm_(2.0, 0, 1.0), leaf(&[2, 2]).renorm_(2.0, 0, 1.0);
        kthvalue: f(&[2]).kthvalue(1, 1), f(&[2]).kthvalue(0, 0), f(&[2]).kthvalue(3, 0), f(&[2]).kthvalue(FAR, 0);
        quantile: f(&[2]).quantile(0.5, 1), f(&[2]).quantile(2.0, 0), l(&[2]).quantile(0.5, 0), f(&[0]).quantile(0.5, 0),
            f(&[2]).quantile(&l(&[1]), 0), f(&[2]).quantile(&f(&[1, 1]), 0), f(&[2]).quantile_keepdim(0.5, -2),
            f(&[0]).quantile_all(0.5), f(&[2]).quantile_with(0.5, Some(1), true, Interpolation::Lower);
        nanquantile: f(&[2]).nanquantile(0.5, 1), l(&[2]).nanquantile_all(0.5), f(&[2]).nanquantile_keepdim(2.0, 0);
        cumsum: f(&[2]).cumsum(1);
        cumsum_reversed: f(&[2]).cumsum_reversed(1);
        cumprod: f(&[2]).cumprod(1);
        cummax: f(&[2]).cummax(1), f(&[2]).cummax(-2);
        cummin: f(&[2]).cummin(1), f(&[2]).cummin(FAR);
        logcumsumexp: f(&[2]).logcumsumexp(1);
        trapezoid: f(&[2]).trapezoid(1), f(&[]).trapezoid(0), f(&[2]).trapezoid_with(&f(&[3]), 0), f(&[2]).trapezoid_with(true, 0);
        cumulative_trapezoid: f(&[2]).cumulative_trapezoid(1), f(&[]).cumulative_trapezoid(0),
            f(&[2]).cumulative_trapezoid_with(&f(&[3]), 0), f(&[2]).cumulative_trapezoid_with(true, 0);
        diff: f(&[2]).diff(1), f(&[]).diff(0), f(&[2]).diff_with(1, -2);
        trace: f(&[2]).trace();
        softmax: f(&[2]).softmax(1), l(&[2]).softmax(2);
        log_softmax: f(&[2]).log_softmax(1);
        normalize: f(&[2]).normalize(1), l(&[2]).normalize(0);
        cosine_similarity: f(&[2]).cosine_similarity(&f(&[3]), 0), f(&[2]).cosine_similarity(&f(&[2]), 1);
    }
}

pub fn multiplied() -> Table {
    table! {
        mm: f(&[2, 3]).mm(&f(&[2, 3])), f(&[2]).mm(&f(&[2]));
        mm_out: f(&[2, 2]).mm_out(&f(&[2, 2]), &mut f(&[3]));
        bmm: f(&[1, 2, 3]).bmm(&f(&[1, 2, 3]));
        bmm_out: f(&[1, 2, 2]).bmm_out(&f(&[1, 2, 2]), &mut f(&[3]));
        mv: f(&[2, 3]).mv(&f(&[2]));
        mv_out: f(&[2, 2]).mv_out(&f(&[2]), &mut f(&[3]));
        matmul: f(&[2, 3]).matmul(&f(&[2, 3])), f(&[]).matmul(&f(&[2])), f(&[2, 1, 3]).matmul(&f(&[3, 3, 1]));
        dot: f(&[2]).dot(&f(&[3])), f(&[2, 2]).dot(&f(&[2]));
        vdot: f(&[2]).vdot(&f(&[3]));
        vecdot: f(&[2]).vecdot(&f(&[3]), 0), f(&[2]).vecdot(&f(&[2]), 1);
        adjoint: f(&[2]).adjoint();
        imag: f(&[2]).imag();
        polar: Tensor::polar(&l(&[2]), &f(&[2])), Tensor::polar(&f(&[2]), &f(&[3]));
        outer: f(&[2, 2]).outer(&f(&[2]));
        addmm: f(&[2]).addmm(&f(&[2, 3]), &f(&[2, 3])), f(&[2]).addmm_(&f(&[2, 2]), &f(&[2, 2])),
            f(&[3]).addmm_with(&f(&[2, 2]), &f(&[2, 2]), 1, 1);
        baddbmm: f(&[2]).baddbmm(&f(&[1, 2, 3]), &f(&[1, 2, 3])), f(&[2]).baddbmm_(&f(&[1, 2, 2]), &f(&[1, 2, 2]));
        linear: f(&[2, 3]).linear(&f(&[2, 2]), None), f(&[2, 3]).linear(&f(&[2, 3]), Some(&f(&[3])));
        einsum: Tensor::einsum("ij,jk->ik", &[f(&[2, 3])]), Tensor::einsum("?", &[f(&[2])]), Tensor::einsum("ii->i", &[f(&[2, 3])]);
        tensordot: f(&[2, 3]).tensordot(&f(&[2, 3]), 1, 0), f(&[2]).tensordot(&f(&[2]), 1, 0), f(&[2]).tensordot(&f(&[2]), (0, 0), 0);
        tensordot_inner: f(&[2, 3]).tensordot_inner(&f(&[2, 3]), 1), f(&[2]).tensordot_inner(&f(&[2]), 2),
            f(&[2]).tensordot_inner(&f(&[2]), FAR), f(&[2]).tensordot_inner(&f(&[2]), 1 << 60);
        kron: Tensor::zeros((1usize << 40, 0)).unwrap().kron(&Tensor::zeros((1usize << 40, 0)).unwrap());
        cov: f(&[1, 2, 3]).cov(), f(&[1, 2, 3]).cov_with(0);
        corrcoef: f(&[1, 2, 3]).corrcoef();
        cdist: f(&[2]).cdist(&f(&[2])), f(&[2, 3]).cdist(&f(&[2, 4])), f(&[2, 3]).cdist_with(&f(&[2, 3]), -1.0),
            f(&[2, 2, 3]).cdist(&f(&[3, 2, 3])), l(&[2, 3]).cdist(&l(&[2, 3]));
        pdist: f(&[2]).pdist(), l(&[2, 3]).pdist(), f(&[2, 3]).pdist_with(-1.0);
        cross: f(&[2]).cross(&f(&[2])), f(&[3]).cross_with(&f(&[3]), 1);
        sampled_mm: f(&[2, 2]).sampled_mm(&f(&[2, 3]), &f(&[2, 2]));
        sparse_mask: f(&[2, 2]).sparse_mask(&f(&[3, 2]));
        prelu: f(&[2, 3]).prelu(&f(&[2])), f(&[2, 3]).prelu(&f(&[1, 1]));
    }
}

/// Element-wise functions: by an `out` of another shape, or by what they do not take.
pub fn element_wise() -> Table {
    macro_rules! unary {
        ($($name:ident)*) => { table! { $($name: f(&[2]).$name(&mut f(&[3]));)* } };
    }
    macro_rules! in_place {
        ($($name:ident)*) => { table! { $($name: leaf(&[2]).$name();)* } };
    }
    macro_rules! binary {
        ($($name:ident)*) => { table! { $($name: f(&[2]).$name(&f(&[3]));)* } };
    }
    macro_rules! integral {
        ($($name:ident)*) => { table! { $($name: l(&[2]).$name(&l(&[3])), f(&[2]).$name(&f(&[2]));)* } };
    }
    let mut all = unary! {
        abs_out acos_out acosh_out asin_out asinh_out atan_out atanh_out ceil_out cos_out cosh_out digamma_out erf_out erfc_out
        erfinv_out exp_out expm1_out floor_out lgamma_out log10_out log1p_out log2_out log_out logical_not_out nan_to_num_out
        neg_out reciprocal_out round_out rsqrt_out sigmoid_out sign_out sin_out sinh_out sqrt_out square_out tan_out tanh_out
        trunc_out
    };
    all.extend(in_place! {
        abs_ acos_ acosh_ asin_ asinh_ atan_ atanh_ ceil_ celu_ cos_ cosh_ digamma_ elu_ erf_ erfc_ erfinv_ exp_ expm1_ floor_
        hardswish_ leaky_relu_ lgamma_ log10_ log1p_ log2_ log_ logical_not_ mish_ nan_to_num_ neg_ reciprocal_ relu_ round_
        rsqrt_ selu_ sigmoid_ sign_ silu_ sin_ sinh_ softshrink_ sqrt_ square_ tan_ tanh_ tril_ triu_ trunc_
    });
    all.extend(binary! {
        add sub mul div pow atan2 hypot copysign nextafter xlogy logaddexp maximum minimum fmod remainder eq ne lt le gt ge
        logical_and logical_or logical_xor floor_divide rsub rdiv rpow fmax fmin isclose allclose add_ sub_ mul_ div_ pow_ fmod_
        remainder_ floor_divide_ heaviside
    });
    all.extend(integral! { bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift });
    all.extend(table! {
        bitwise_not: f(&[2]).bitwise_not();
        neg: b(&[2]).neg();
        exp_: l(&[2]).exp_();
        add_out: f(&[2]).add_out(1, &mut f(&[3]));
        add_: f(&[1]).add_(&f(&[3])), l(&[2]).add_(0.5), l(&[2]).add_(&f(&[2]));
        mul_: f(&[1]).mul_(&f(&[3])), l(&[2]).mul_(0.5);
        clamp_: f(&[1]).clamp_(&f(&[3]), 1.0);
        lerp_: f(&[1]).lerp_(&f(&[3]), 0.5);
        masked_fill_: f(&[1]).masked_fill_(&b(&[3]), 1);
        add_with: l(&[2]).add_with(&l(&[2]), 0.5), f(&[2]).add_with_(&f(&[3]), 2);
        sub_with: l(&[2]).sub_with(&l(&[2]), 0.5), f(&[2]).sub_with_(&f(&[3]), 2);
        div_with: f(&[2]).div_with(&f(&[3]), Rounding::Floor), f(&[2]).div_with_(&f(&[3]), Rounding::Trunc);
        addcmul: f(&[2]).addcmul(&f(&[3]), &f(&[2])), f(&[2]).addcmul_with_(&f(&[3]), &f(&[2]), 2);
        addcdiv: f(&[2]).addcdiv(&f(&[3]), &f(&[2])), f(&[2]).addcdiv_(&f(&[3]), &f(&[2]));
        lerp: f(&[2]).lerp(&f(&[3]), 0.5), f(&[2]).lerp_(&f(&[3]), 0.5), l(&[2]).lerp(&l(&[2]), 0.5);
        clamp: f(&[2]).clamp(&f(&[3]), 1.0), leaf(&[2]).clamp_(0.0, 1.0);
        clamp_out: f(&[2]).clamp_out(0.0, 1.0, &mut f(&[3]));
        clamp_min: f(&[2]).clamp_min(&f(&[3])), f(&[2]).clamp_min(None);
        clamp_max: f(&[2]).clamp_max(&f(&[3])), f(&[2]).clamp_max(None);
        isclose_with: f(&[2]).isclose_with(&f(&[2]), -1.0, 0.0, false);
        allclose_with: f(&[2]).allclose_with(&f(&[2]), -1.0, 0.0, false);
        logit_with: f(&[2]).logit_with(0.7);
        polygamma: f(&[2]).polygamma(FAR);
        hardtanh: f(&[2]).hardtanh_with(1, -1), f(&[2]).hardtanh_with(&f(&[2]), 1);
        threshold: f(&[2]).threshold(&f(&[2]), 1), f(&[2]).threshold(1, &f(&[2]));
        gumbel_softmax: f(&[2]).gumbel_softmax(1.0, true, 1), f(&[2]).gumbel_softmax(0.0, true, 0), l(&[2]).gumbel_softmax(1.0, false, 0);
        glu: f(&[3]).glu(), f(&[2]).glu_with(1), l(&[2]).glu();
        frac: b(&[2]).frac();
        float_power: f(&[2]).float_power(&f(&[3]));
        hardswish: l(&[2]).hardswish();
        hardswish_backward: f(&[2]).hardswish_backward(&f(&[3]));
        softplus_backward: f(&[2]).softplus_backward(&f(&[3]), 1, 20);
        softshrink_backward: f(&[2]).softshrink_backward(&f(&[3]), 0.5), f(&[2]).softshrink_backward(&f(&[2]), -1);
        gelu_backward: f(&[2]).gelu_backward(&f(&[3]), keyway::nn::Approximate::None);
        relu_backward: f(&[2]).relu_backward(&f(&[3]));
        sigmoid_backward: f(&[2]).sigmoid_backward(&f(&[3]));
        silu_backward: f(&[2]).silu_backward(&f(&[3]));
        tanh_backward: f(&[2]).tanh_backward(&f(&[3]));
    });
    all
}
