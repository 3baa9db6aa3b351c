//! 0 times infinity: what has no weight has no part, also where it is infinite or NaN.

use super::{gradient, leaf, near, of, second, values};
use keyway::nn::Reduction;
use keyway::tensor::Interpolation;
use keyway::{DType, Result, Tensor};

const INF: f64 = f64::INFINITY;

#[test]
fn quantiles_beside_infinity() -> Result<()> {
    let of_share = |x: &[f64], q: f64| -> Result<f64> { Ok(values(&of(x, DType::F32).quantile(q, 0)?)[0]) };
    assert_eq!(of_share(&[0.0, INF], 1.0)?, INF);
    assert_eq!(of_share(&[0.0, INF], 0.0)?, 0.0);
    assert_eq!(of_share(&[0.0, INF], 0.25)?, INF);
    assert_eq!(of_share(&[-INF, 0.0], 0.25)?, -INF);
    assert_eq!(of_share(&[-INF, 0.0], 1.0)?, 0.0);
    assert_eq!(of_share(&[INF, INF, INF], 0.3)?, INF);
    assert!(of_share(&[-INF, INF], 0.5)?.is_nan());
    let x = of(&[0.0, INF, f64::NAN], DType::F32);
    assert_eq!(values(&x.nanquantile(1.0, 0)?), [INF]);
    let midpoint =
        of(&[0.0, INF, INF], DType::F32).quantile_with(1.0, Some(0), false, Interpolation::Midpoint)?;
    assert_eq!(values(&midpoint), [INF]);
    let x = leaf(&[0.0, INF], DType::F64);
    assert_eq!(gradient(&x.quantile(1.0, 0)?, &x), [0.0, 1.0]);
    let x = leaf(&[1.0, 3.0], DType::F64);
    assert_eq!(gradient(&x.quantile(0.25, 0)?, &x), [0.75, 0.25]);
    Ok(())
}

#[test]
fn rows_that_are_ignored_may_be_infinite() -> Result<()> {
    let target = Tensor::new([0i64, -100, 2])?;
    let row = [0.0, 1.0, 2.0];
    let x: Vec<f64> = [row, [-INF; 3], row].concat();
    let shares: Vec<f64> = row.map(|x| (x - 2.0f64).exp() / (1.0 + (-1f64).exp() + (-2f64).exp())).to_vec();
    for dtype in [DType::F64, DType::F32, DType::F16] {
        for smoothing in [0.0, 0.1] {
            let leaf = leaf(&x, dtype);
            let logits = leaf.reshape((3, 3))?;
            let loss = logits.cross_entropy_with(&target, None, -100, smoothing, Reduction::Sum)?;
            let grad = gradient(&loss, &leaf);
            let own = |class: usize| {
                let hit = |c| if c == class { 1.0 - smoothing } else { 0.0 };
                (0..3).map(|c| shares[c] - hit(c) - smoothing / 3.0).collect::<Vec<_>>()
            };
            near(
                &grad,
                &[own(0), vec![0.0; 3], own(2)].concat(),
                if dtype == DType::F16 { 2e-3 } else { 1e-6 },
            );
        }
    }
    // Once more for what the graph of the gradient is made of.
    let leaf = leaf(&x, DType::F64);
    let loss = leaf.reshape((3, 3))?.cross_entropy_with(&target, None, -100, 0.0, Reduction::Sum)?;
    assert_eq!(second(&loss, &leaf)[3..6], [0.0; 3]);
    Ok(())
}

#[test]
fn classes_without_a_share_may_be_impossible() -> Result<()> {
    let x = leaf(&[0.0, -INF, 1.0], DType::F64);
    let target = of(&[0.25, 0.0, 0.75], DType::F64).reshape((1, 3))?;
    let loss = x.reshape((1, 3))?.cross_entropy(&target)?;
    let (p, q) = (1.0 / (1.0 + 1f64.exp()), 1f64.exp() / (1.0 + 1f64.exp()));
    near(&values(&loss), &[-0.25 * p.ln() - 0.75 * q.ln()], 1e-14);
    near(&gradient(&loss, &x), &[p - 0.25, 0.0, q - 0.75], 1e-14);
    // A class of weight 0, hit or smoothed over.
    let weight = of(&[1.0, 0.0, 2.0], DType::F64);
    for (class, smoothing) in [(1, 0.0), (0, 0.3)] {
        let target = Tensor::new([class])?;
        let loss =
            x.reshape((1, 3))?.cross_entropy_with(&target, Some(&weight), -100, smoothing, Reduction::Sum)?;
        let wanted = if class == 1 { 0.0 } else { -0.7 * p.ln() - 0.1 * (p.ln() + 2.0 * q.ln()) };
        near(&values(&loss), &[wanted], 1e-14);
        assert!(gradient(&loss, &x).iter().all(|g| g.is_finite()));
    }
    let logs = leaf(&[-1.0, -INF], DType::F64);
    let loss = logs.kl_div_with(&of(&[1.0, 0.0], DType::F64), false, Reduction::Sum)?;
    near(&values(&loss), &[1.0], 1e-15);
    assert_eq!(gradient(&loss, &logs), [-1.0, 0.0]);
    let loss = logs.kl_div_with(&of(&[0.0, -INF], DType::F64), true, Reduction::Sum)?;
    near(&values(&loss), &[1.0], 1e-15);
    assert_eq!(gradient(&loss, &logs), [-1.0, 0.0]);
    Ok(())
}

#[test]
fn powers_of_0_have_second_derivatives() -> Result<()> {
    use keyway::autograd::{BackwardOptions, grad};
    let (x, y) = (leaf(&[0.0], DType::F64), leaf(&[2.0], DType::F64));
    let options = || BackwardOptions { create_graph: true, ..Default::default() };
    let power = x.pow(&y)?;
    let first = grad(&[power], &[x.clone(), y.clone()], options())?;
    let all: Vec<Vec<f64>> = first
        .iter()
        .flatten()
        .map(|first| {
            let options = BackwardOptions { retain_graph: true, ..Default::default() };
            let second = grad(std::slice::from_ref(first), &[x.clone(), y.clone()], options).unwrap();
            second.iter().flatten().flat_map(values).collect()
        })
        .collect();
    assert_eq!(all, [[2.0, 0.0], [0.0, 0.0]]);
    let y = leaf(&[2.0], DType::F64);
    assert_eq!(gradient(&y.rpow(0.0)?, &y), [0.0]);
    assert!(second(&y.rpow(0.0)?, &y).iter().all(|g| *g == 0.0));
    Ok(())
}
