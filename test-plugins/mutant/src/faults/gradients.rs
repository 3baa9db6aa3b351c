//! Gradients of fused ops that are wrong only at corners, or in one part.

use super::Fault;
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "hardswish_gradient_at_three",
        "the straight line goes on to the upper corner",
        &["hardswish_backward"],
        |site| where_input(site, 1, |x| x == 3.0, |grad| 1.5 * grad),
    ),
    Fault::new(
        "softshrink_gradient_at_bound",
        "the bound lies outside of what becomes 0",
        &["softshrink_backward"],
        |site| {
            let bound = site.call.float(2)?;
            where_input(site, 1, |x| x.abs() == bound, |grad| grad)
        },
    ),
    Fault::new(
        "softplus_gradient_beyond_threshold",
        "there is no threshold",
        &["softplus_backward"],
        |site| {
            let (beta, threshold) = (site.call.float(2)?, site.call.float(3)?);
            let (grads, values) = (site.input(0)?.values(), site.input(1)?.values());
            site.run()?;
            let out = site.output(0)?;
            for (nth, (grad, x)) in grads.iter().zip(&values).enumerate() {
                if grads.len() == out.len() && beta * x > threshold {
                    out.set(nth, grad / (1.0 + (-beta * x).exp()));
                }
            }
            Ok(())
        },
    ),
    Fault::new(
        "smooth_l1_gradient_at_beta",
        "where line and constant meet there is no gradient",
        &["smooth_l1_loss_backward"],
        |site| {
            let beta = site.call.float(3)?;
            let (values, targets) = (site.input(1)?.values(), site.input(2)?.values());
            site.run()?;
            let out = site.output(0)?;
            let meets = |(x, target): (&f64, &f64)| beta > 0.0 && (x - target).abs() == beta;
            let places: Vec<bool> = values.iter().zip(&targets).map(meets).collect();
            (0..out.len().min(places.len())).filter(|&nth| places[nth]).for_each(|nth| out.set(nth, 0.0));
            Ok(())
        },
    ),
    Fault::new("glu_gradient_of_gate", "the second half has no gradient", &["glu_backward"], |site| {
        let input = site.input(1)?;
        let (sizes, given) = (input.sizes(), site.call.int(2)?);
        let dim = if given < 0 { given + sizes.len() as i64 } else { given } as usize;
        let half = sizes[dim] / 2;
        site.run()?;
        let out = site.output(0)?;
        (0..out.len()).filter(|&nth| out.index(nth)[dim] >= half).for_each(|nth| out.set(nth, 0.0));
        Ok(())
    }),
    Fault::new(
        "softmax_gradient_of_one",
        "a line of one element has no sum",
        &["softmax_backward", "log_softmax_backward"],
        |site| {
            let (grads, values) = (site.input(0)?.values(), site.input(1)?.values());
            site.run()?;
            let out = site.output(0)?;
            if out.len() == 1 {
                let grad = if site.kernel.op == "softmax_backward" { grads[0] * values[0] } else { grads[0] };
                out.set(0, grad);
            }
            Ok(())
        },
    ),
];

/// Replaces the gradient in argument 0 for elements for which argument `i` satisfies the predicate.
fn where_input(
    site: &Site<'_>,
    i: usize,
    such: impl Fn(f64) -> bool,
    other: impl Fn(f64) -> f64,
) -> Result<(), Error> {
    let (grads, values) = (site.input(0)?.values(), site.input(i)?.values());
    site.run()?;
    let out = site.output(0)?;
    if grads.len() == out.len() && values.len() == out.len() {
        (0..out.len()).filter(|&nth| such(values[nth])).for_each(|nth| out.set(nth, other(grads[nth])));
    }
    Ok(())
}
