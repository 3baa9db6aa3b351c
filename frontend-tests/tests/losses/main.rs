//! Losses, distances and statistics that are short formulas of ops, compared with the values and gradients of PyTorch 2.15 in
//! f64.
//!
//! The expected values of each case are those of PyTorch's function of the same name, with `reduction="none"`; the gradients are
//! those of `(losses * torch.arange(1, n + 1)).sum()`.

// The numbers are as they were printed, also where they have a name.
#![allow(clippy::approx_constant)]

mod ctc;
mod distances;
mod scores;
mod statistics;

use keyway::Result;
use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::nn::{self, Reduction, TripletMarginOptions, functional as F};
use keyway::prelude::*;

const INF: f64 = f64::INFINITY;

/// The third rows of `A` and `P` are equal.
const A: Input = (&[0.3, -1.2, 0.5, 2.0, 0.1, -0.7, -0.4, 0.9, 1.5, 1.0, 1.0, -2.0], &[4, 3]);
const P: Input = (&[0.1, -1.0, 0.7, 1.0, 0.3, -0.2, -0.4, 0.9, 1.5, -1.0, 0.2, 2.0], &[4, 3]);
const N: Input = (&[1.3, 0.4, -0.5, 1.9, 0.2, -0.6, 2.4, -0.9, 0.5, 0.9, 1.1, -1.8], &[4, 3]);
const X: Input = (&[-1.5, 0.25, 0.0, 3.0, 1.0, -0.5], &[6]);
const Y: Input = (&[0.5, -0.25, 0.0, 1.0, -2.0, 0.75], &[6]);
const COUNTS: Input = (&[0.0, 1.0, 3.0, 2.5, 0.5, 7.0], &[6]);
const RATES: Input = (&[0.5, 2.0, 0.25, 3.0, 1.0, 4.0], &[6]);
const SIGNS: [f64; 6] = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0];
const SCORES: Input = (&[0.1, 0.2, 0.4, 0.8, 1.5, -0.5, 0.5, 2.0, 0.25, 0.25, 1.25, -3.0], &[3, 4]);

type Input = (&'static [f64], &'static [usize]);

fn tensor((values, shape): Input) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

fn row(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, values.len()).unwrap()
}

#[track_caller]
fn near(got: &Tensor, expected: &[f64], what: &str) {
    let got = got.to_vec_f64().unwrap();
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let close = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-14 + 1e-13 * b.abs();
        assert!(close, "{what}, element {i}: {a}, expected {b}");
    }
}

/// Checks the values without a reduction and the gradients of their weighted sum.
#[track_caller]
fn check_one(
    what: &str,
    inputs: &[Input],
    run: impl Fn(&[Tensor]) -> Result<Tensor>,
    expected: &[f64],
    gradients: &[&[f64]],
) {
    let leaves: Vec<Tensor> =
        inputs.iter().map(|input| tensor(*input).requires_grad_(true).unwrap()).collect();
    let losses = run(&leaves).unwrap();
    near(&losses.detach(), expected, what);
    let weights: Vec<f64> = (1..=expected.len()).map(|i| i as f64).collect();
    losses.backward_with(&Tensor::from_slice(&weights, losses.shape()).unwrap()).unwrap();
    assert_eq!(leaves.len(), gradients.len(), "{what}");
    for (i, (leaf, gradient)) in leaves.iter().zip(gradients).enumerate() {
        near(&leaf.grad().unwrap(), gradient, &format!("{what}, gradient {i}"));
    }
}

/// [`check_one`], and the mean and the sum.
#[track_caller]
fn check(
    what: &str,
    inputs: &[Input],
    run: impl Fn(&[Tensor], Reduction) -> Result<Tensor>,
    expected: &[f64],
    gradients: &[&[f64]],
) {
    check_one(what, inputs, |t| run(t, Reduction::None), expected, gradients);
    let tensors: Vec<Tensor> = inputs.iter().map(|input| tensor(*input)).collect();
    let sum: f64 = expected.iter().sum();
    near(&run(&tensors, Reduction::Sum).unwrap(), &[sum], &format!("{what}, sum"));
    near(&run(&tensors, Reduction::Mean).unwrap(), &[sum / expected.len() as f64], &format!("{what}, mean"));
    let refused = run(&tensors, Reduction::BatchMean).unwrap_err().to_string();
    assert!(refused.contains("none, mean or sum"), "{refused}");
}

/// Checks first and second derivatives against finite differences.
#[track_caller]
fn smooth(what: &str, inputs: &[Input], run: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let leaves: Vec<Tensor> =
        inputs.iter().map(|input| tensor(*input).requires_grad_(true).unwrap()).collect();
    let function = |tensors: &[Tensor]| Ok(vec![run(tensors)?]);
    for (order, check) in [("first", gradcheck as fn(&_, &_, _) -> _), ("second", gradgradcheck)] {
        let mismatch = check(&function, &leaves, Tolerance::default()).unwrap();
        assert!(mismatch.is_none(), "{what}, {order} order: {mismatch:?}");
    }
}

#[test]
fn derivatives_agree_with_differences() {
    const OTHER: Input = (&[0.1, -1.0, 0.7, 1.0, 0.3, -0.2, -0.9, 0.2, 0.5, -1.0, 0.2, 2.0], &[4, 3]);
    let signs = Tensor::new([1i64, -1, -1, 1]).unwrap();
    let classes = Tensor::new([3i64, 0, 1]).unwrap();
    let none = Reduction::None;
    for p in [1.5, 2.0, 3.0] {
        smooth("pairwise_distance", &[A, OTHER], |t| t[0].pairwise_distance_with(&t[1], p, 1e-6, false));
    }
    for swap in [false, true] {
        let options = TripletMarginOptions { margin: 3.0, swap, ..Default::default() };
        smooth("triplet_margin_loss", &[A, OTHER, N], |t| {
            t[0].triplet_margin_loss_with(&t[1], &t[2], options)
        });
    }
    smooth("cosine_embedding_loss", &[A, OTHER], |t| {
        t[0].cosine_embedding_loss_with(&t[1], &signs, 0.1, none)
    });
    smooth("margin_ranking_loss", &[X, Y], |t| t[0].margin_ranking_loss_with(&t[1], &row(&SIGNS), 0.3, none));
    smooth("hinge_embedding_loss", &[X], |t| t[0].hinge_embedding_loss_with(&row(&SIGNS), 1.3, none));
    smooth("soft_margin_loss", &[X, Y], |t| t[0].soft_margin_loss_with(&t[1], none));
    for p in [1, 2] {
        smooth("multi_margin_loss", &[SCORES, (&[0.5, 1.5, 2.0, 1.0], &[4])], |t| {
            t[0].multi_margin_loss_with(&classes, p, 0.9, Some(&t[1]), none)
        });
    }
    for (log_input, full) in [(true, false), (true, true), (false, true)] {
        smooth("poisson_nll_loss", &[RATES, (&[0.2, 1.5, 3.0, 2.5, 0.5, 7.0], &[6])], |t| {
            t[0].poisson_nll_loss_with(&t[1], log_input, full, 1e-3, none)
        });
    }
    smooth("gaussian_nll_loss", &[X, Y, RATES], |t| {
        t[0].gaussian_nll_loss_with(&t[1], &t[2], true, 1e-6, none)
    });
}

/// Each loss of f16 and bf16 is that of the same values in f32, rounded once.
#[test]
fn halves_are_computed_in_f32() -> Result<()> {
    type Loss = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let losses: [Loss; 8] = [
        |a, b| a.pairwise_distance(b),
        |a, b| {
            a.triplet_margin_loss_with(
                b,
                &b.neg()?,
                TripletMarginOptions::default().reduction(Reduction::None),
            )
        },
        |a, b| a.cosine_embedding_loss_with(b, &Tensor::new([1i64, -1])?, 0.0, Reduction::None),
        |a, b| a.margin_ranking_loss_with(b, &b.sign()?, 0.5, Reduction::None),
        |a, b| a.hinge_embedding_loss_with(&b.sign()?, 0.3, Reduction::None),
        |a, b| a.soft_margin_loss_with(&b.sign()?, Reduction::None),
        |a, b| a.poisson_nll_loss_with(&b.abs()?, true, true, 1e-8, Reduction::None),
        |a, b| a.gaussian_nll_loss_with(b, &a.abs()?, false, 1e-6, Reduction::None),
    ];
    for dtype in [DType::F16, DType::BF16] {
        let a = Tensor::new([[0.3f32, -1.2, 0.5], [2.0, 0.1, -0.7]])?.to_dtype(dtype)?;
        let b = Tensor::new([[0.1f32, -1.0, 3.7], [1.0, 4.3, -0.2]])?.to_dtype(dtype)?;
        let (wide_a, wide_b) = (a.to_dtype(DType::F32)?, b.to_dtype(DType::F32)?);
        for (i, loss) in losses.iter().enumerate() {
            let made = loss(&a, &b)?;
            assert_eq!(made.dtype(), dtype, "loss {i}");
            let expected = loss(&wide_a, &wide_b)?.to_dtype(dtype)?;
            assert_eq!(made.to_vec_f64()?, expected.to_vec_f64()?, "loss {i} in {dtype}");
        }
        let classes = Tensor::new([2i64, 0])?;
        let expected = wide_a.multi_margin_loss(&classes)?.to_dtype(dtype)?;
        assert_eq!(a.multi_margin_loss(&classes)?.to_vec_f64()?, expected.to_vec_f64()?);
    }
    // Differences above the largest f16.
    let far = Tensor::new([60000.0f32, 0.0])?.to_dtype(DType::F16)?;
    assert_eq!(far.margin_ranking_loss(&far.neg()?, &Tensor::new([-1i64, -1])?)?.to_vec_f64()?, [60000.0]);
    Ok(())
}

/// Calls that functions and modules refuse although the methods broadcast, and calls that all refuse.
#[test]
fn wrong_calls() {
    let (a, x) = (tensor(A), tensor(X));
    let said = |made: Result<Tensor>| made.unwrap_err().to_string();
    for (text, parts) in [
        (said(a.pairwise_distance(&row(&[1.0; 4]))), ["pairwise_distance", "broadcast"]),
        (said(a.pairwise_distance(&Tensor::new(1.0f64).unwrap())), ["`other`", "1 dimension"]),
        (said(a.pairwise_distance_with(&a, f64::NAN, 1e-6, false)), ["pairwise_distance", "`p`"]),
        (said(a.pairwise_distance_with(&a, 2.0, INF, false)), ["pairwise_distance", "`eps`"]),
        (said(a.triplet_margin_loss(&a, &x)), ["triplet_margin_loss", "`negative`"]),
        (said(F::triplet_margin_loss(&a, &a.i(..1).unwrap(), &a)), ["triplet_margin_loss", "[1, 3]"]),
        (
            said(a.triplet_margin_loss_with(&a, &a, TripletMarginOptions::default().margin(0.0))),
            ["`margin`", "above 0"],
        ),
        (said(a.cosine_embedding_loss(&a, &row(&[1.0; 3]))), ["cosine_embedding_loss", "`target`"]),
        (said(a.cosine_embedding_loss(&row(&[1.0; 3]), &row(&[1.0; 4]))), ["`other`", "2 dimensions"]),
        (said(x.margin_ranking_loss(&x, &row(&[1.0; 4]))), ["margin_ranking_loss", "`target`"]),
        (said(F::margin_ranking_loss(&x, &x, &row(&[1.0]))), ["margin_ranking_loss", "[6]"]),
        (said(x.margin_ranking_loss_with(&x, &x, f64::NAN, Reduction::Mean)), ["`margin`", "finite"]),
        (said(x.hinge_embedding_loss(&row(&[1.0; 4]))), ["hinge_embedding_loss", "`target`"]),
        (said(x.soft_margin_loss(&row(&[1.0; 4]))), ["soft_margin_loss", "broadcast"]),
        (said(Tensor::new([1i64]).unwrap().soft_margin_loss(&x)), ["soft_margin_loss", "float"]),
        (said(a.multi_margin_loss(&Tensor::new([0i64, 1, 2, 3]).unwrap())), ["multi_margin_loss", "3"]),
        (said(a.multi_margin_loss(&Tensor::new([0i64, 1]).unwrap())), ["`target`", "[4]"]),
        (said(a.multi_margin_loss(&row(&[0.0; 4]))), ["multi_margin_loss", "`target`"]),
        (
            said(nn::MultiMarginLoss::new().p(3).forward(&a, &Tensor::new([0i64; 4]).unwrap())),
            ["`p`", "1 or 2"],
        ),
        (
            said(nn::MultiMarginLoss::new().weight(x.clone()).forward(&a, &Tensor::new([0i64; 4]).unwrap())),
            ["`weight`", "[3]"],
        ),
        (
            said(tensor((&[], &[2, 0])).multi_margin_loss(&Tensor::new([0i64, 1]).unwrap())),
            ["`self`", "1 class"],
        ),
        (said(x.poisson_nll_loss(&row(&[1.0; 4]))), ["poisson_nll_loss", "broadcast"]),
        (said(nn::PoissonNllLoss::new().eps(-1.0).forward(&x, &x)), ["`eps`", "0 or more"]),
        (said(x.gaussian_nll_loss(&x, &row(&[1.0; 4]))), ["gaussian_nll_loss", "`var`"]),
        (said(x.gaussian_nll_loss(&x, &x)), ["`var`", "negative"]),
        (said(F::gaussian_nll_loss(&x, &row(&[1.0]), &x)), ["gaussian_nll_loss", "[1]"]),
    ] {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}: expected {parts:?}");
    }
}
