//! Connectionist temporal classification. The states are the number of labels so far, and whether the last symbol was one.

use super::number::sum;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};

/// One sequence: its log-probabilities, step by step, and its labels.
struct Sequence {
    steps: Vec<Vec<f64>>,
    labels: Vec<usize>,
    blank: usize,
}

fn log_sum(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, |a, b| if a > b || a.is_nan() { a } else { b });
    if most.is_infinite() || most.is_nan() {
        return most;
    }
    most + sum(values.iter().map(|x| (x - most).exp())).ln()
}

impl Sequence {
    /// The log-probability of the labels; with `forced`, that they have and the step has the class.
    fn likelihood(&self, forced: Option<(usize, usize)>) -> f64 {
        const NONE: f64 = f64::NEG_INFINITY;
        // After a blank or before the first symbol, and after a label.
        let mut open = vec![NONE; self.labels.len() + 1];
        let mut closed = open.clone();
        open[0] = 0.0;
        for (t, step) in self.steps.iter().enumerate() {
            let of = |class: usize| match forced {
                Some((at, only)) if at == t && only != class => NONE,
                _ => step[class],
            };
            let (mut next_open, mut next_closed) = (open.clone(), closed.clone());
            for u in 0..open.len() {
                next_open[u] = log_sum(&[open[u], closed[u]]) + of(self.blank);
                next_closed[u] = match u.checked_sub(1) {
                    None => NONE,
                    Some(k) => {
                        let differs = k == 0 || self.labels[k - 1] != self.labels[k];
                        let moved = if differs { closed[k] } else { NONE };
                        log_sum(&[closed[u], open[k], moved]) + of(self.labels[k])
                    }
                };
            }
            (open, closed) = (next_open, next_closed);
        }
        log_sum(&[open[self.labels.len()], closed[self.labels.len()]])
    }
}

/// The sequences of a batch, from the arguments from `first` on.
fn sequences(inputs: &Inputs, first: usize) -> Result<Vec<Sequence>, Unknown> {
    let wrong = || Unknown("sizes that do not fit".into());
    let (given, targets) = (inputs.array(first)?, inputs.array(first + 1)?);
    let &[steps, batch, classes] = &given.sizes[..] else { return Err(wrong()) };
    let (lengths, counts) = (inputs.ints(first + 2)?, inputs.ints(first + 3)?);
    let blank = usize::try_from(inputs.int(first + 4)?).map_err(|_| wrong())?;
    if lengths.len() != batch || counts.len() != batch || blank >= classes {
        return Err(wrong());
    }
    let (values, labels) = (given.floats(), targets.ints());
    let mut offset = 0;
    let mut all = Vec::new();
    for nth in 0..batch {
        let count = usize::try_from(counts[nth]).map_err(|_| wrong())?;
        let length = usize::try_from(lengths[nth]).ok().filter(|&n| n <= steps).ok_or_else(wrong)?;
        let from = if targets.ndim() == 2 { nth * targets.sizes[1] } else { offset };
        offset += count;
        let own = labels.get(from..from + count).ok_or_else(wrong)?;
        let class = |&l: &i128| usize::try_from(l).ok().filter(|&l| l < classes && l != blank);
        all.push(Sequence {
            steps: (0..length).map(|t| values[(t * batch + nth) * classes..][..classes].to_vec()).collect(),
            labels: own.iter().map(class).collect::<Option<_>>().ok_or_else(wrong)?,
            blank,
        });
    }
    Ok(all)
}

fn ctc_loss(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let all = sequences(inputs, 0)?;
    let zero = inputs.bool(5)?;
    let losses = all.iter().map(|sequence| {
        let loss = -sequence.likelihood(None);
        Number::Float(if zero && loss == f64::INFINITY { 0.0 } else { loss })
    });
    Ok(vec![Array::new(inputs.array(0)?.dtype, [all.len()], losses.collect())])
}

/// Minus the probability of each class at each step given the labels: that of the labels with the step's class forced, by that
/// of the labels.
fn ctc_loss_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let all = sequences(inputs, 1)?;
    let (grads, given, zero) = (inputs.array(0)?.floats(), inputs.array(1)?, inputs.bool(6)?);
    if grads.len() != all.len() {
        return Err(Unknown("gradients of another number of losses".into()));
    }
    let work = |s: &Sequence| s.steps.len().pow(2) * given.sizes[2] * (s.labels.len() + 1);
    if all.iter().map(work).sum::<usize>() > 10_000_000 {
        return Err(Unknown("more steps than one recursion for each element is worth".into()));
    }
    let whole: Vec<f64> = all.iter().map(|sequence| sequence.likelihood(None)).collect();
    Ok(vec![Array::from_fn(given.dtype, given.sizes.clone(), |index| {
        let &[t, nth, class] = index else { return Number::Any };
        let (sequence, whole) = (&all[nth], whole[nth]);
        if t >= sequence.steps.len() || zero && whole == f64::NEG_INFINITY {
            return Number::Float(0.0);
        }
        if whole == f64::NEG_INFINITY {
            // Neither 0 nor a number: no alignment has a probability.
            return Number::Any;
        }
        Number::Float(-grads[nth] * (sequence.likelihood(Some((t, class))) - whole).exp())
    })])
}

/// The ops of this family.
pub const ALL: Family = &[("ctc_loss", ctc_loss), ("ctc_loss_backward", ctc_loss_backward)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_label_needs_a_blank() {
        let half = vec![0.5f64.ln(); 2];
        let of = |steps: usize, labels: &[usize]| {
            Sequence { steps: vec![half.clone(); steps], labels: labels.to_vec(), blank: 0 }
                .likelihood(None)
                .exp()
        };
        assert_eq!(of(2, &[1, 1]), 0.0);
        assert!((of(3, &[1, 1]) - 0.125).abs() < 1e-15);
        assert!((of(2, &[1]) - 0.75).abs() < 1e-15);
        assert!((of(2, &[]) - 0.25).abs() < 1e-15);
        assert_eq!(of(0, &[]), 1.0);
    }
}
