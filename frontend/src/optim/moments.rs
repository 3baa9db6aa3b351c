//! The running means of Adam and its kin.

use super::group::{Group, Loaded, Options, load, save, steps_of};
use super::rows::Rows;
use crate::nn::StateDict;
use crate::{Result, Tensor};

/// What is remembered of a parameter.
#[derive(Debug)]
pub(super) struct Moments {
    pub(super) steps: i64,
    /// The mean of the gradients.
    pub(super) first: Tensor,
    /// The mean of their squares.
    pub(super) second: Tensor,
}

const NAMES: [&str; 3] = ["step", "exp_avg", "exp_avg_sq"];

impl Moments {
    /// Those before the first step.
    pub(super) fn zeros(p: &Tensor) -> Result<Moments> {
        let zeros = || p.detach().zeros_like();
        Ok(Moments { steps: 0, first: zeros()?, second: zeros()? })
    }

    /// The state dict of some groups' parameters.
    pub(super) fn save<O: Options>(groups: &[Group<O>], all: &[Option<Moments>]) -> Result<StateDict> {
        let memory = |moments: &Option<Moments>| {
            let Some(m) = moments else { return Ok(None) };
            let tensors = [Tensor::scalar(m.steps)?, m.first.clone(), m.second.clone()];
            Ok(Some(NAMES.into_iter().zip(tensors).collect()))
        };
        let memories: Result<Vec<_>> = all.iter().map(memory).collect();
        save(groups, memories?)
    }

    /// The options and moments of a state dict.
    pub(super) fn load<O: Options>(
        owner: &'static str,
        groups: &[Group<O>],
        state: &StateDict,
    ) -> Result<(Vec<O>, Vec<Option<Moments>>)> {
        let Loaded { options, memories } = load(owner, groups, &NAMES, &NAMES[..1], state)?;
        let mut moments = Vec::new();
        for memory in memories {
            moments.push(match memory.as_deref() {
                Some([steps, first, second]) => {
                    Some(Moments { steps: steps_of(steps)?, first: first.clone(), second: second.clone() })
                }
                _ => None,
            });
        }
        Ok((options, moments))
    }
}

/// A step of some rows of a table.
pub(super) struct LazyStep {
    pub(super) beta1: f64,
    pub(super) beta2: f64,
    /// Added to the root of the mean of squares, which is not corrected.
    pub(super) eps: f64,
    /// What the quotient of both, which are not corrected, is multiplied by.
    pub(super) rate: f64,
    /// How much of a row is added to its gradient.
    pub(super) decay: f64,
    /// What a row is multiplied by first.
    pub(super) shrink: f64,
}

impl LazyStep {
    /// Moves the rows that a gradient has, and their means; all others stay as they are.
    pub(super) fn run(&self, p: &Tensor, rows: &Rows, m: &Moments) -> Result<()> {
        let moved = rows.read(p)?;
        let decayed;
        let grad = if self.decay == 0.0 {
            &rows.values
        } else {
            decayed = rows.values.add_scaled(&moved, self.decay)?;
            &decayed
        };
        if self.shrink != 1.0 {
            moved.mul_(self.shrink)?;
        }
        let first = rows.read(&m.first)?.mul_(self.beta1)?.add_scaled_(grad, 1.0 - self.beta1)?;
        rows.write(&m.first, &first)?;
        let second = rows.read(&m.second)?.mul_(self.beta2)?.addcmul_(grad, grad, 1.0 - self.beta2)?;
        rows.write(&m.second, &second)?;
        let denominator = second.sqrt_()?.add_(self.eps)?;
        rows.write(p, &moved.addcdiv_(&first, &denominator, -self.rate)?)
    }
}
