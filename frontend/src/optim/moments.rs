//! The running means of Adam and its kin.

use super::group::{Group, InitialRates, Loaded, Options, load, save, steps_of};
use super::rows::Rows;
use crate::nn::StateDict;
use crate::ops::composite::{cast, widened};
use crate::ops::index::adam_rows::{self, Step};
use crate::{Result, Tensor};

/// Optimiser state of a parameter.
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
    /// The state before the first step.
    pub(super) fn zeros(p: &Tensor) -> Result<Moments> {
        let zeros = || p.detach().zeros_like();
        Ok(Moments { steps: 0, first: zeros()?, second: zeros()? })
    }

    /// The state dict of some groups' parameters.
    pub(super) fn save<O: Options>(
        groups: &[Group<O>],
        initial: &InitialRates,
        all: &[Option<Moments>],
    ) -> Result<StateDict> {
        let memory = |moments: &Option<Moments>| {
            let Some(m) = moments else { return Ok(None) };
            let tensors = [Tensor::new(m.steps)?, m.first.clone(), m.second.clone()];
            Ok(Some(NAMES.into_iter().zip(tensors).collect()))
        };
        let memories: Result<Vec<_>> = all.iter().map(memory).collect();
        save(groups, initial, memories?)
    }

    /// The options, the rates that schedules begin from, and the moments of a state dict.
    pub(super) fn load<O: Options>(
        owner: &'static str,
        groups: &[Group<O>],
        state: &StateDict,
    ) -> Result<(Vec<O>, InitialRates, Vec<Option<Moments>>)> {
        let Loaded { options, initial, memories } = load(owner, groups, &NAMES, &NAMES[..1], state)?;
        let mut moments = Vec::new();
        for memory in memories {
            moments.push(match memory.as_deref() {
                Some([steps, first, second]) => Some(Moments {
                    steps: steps_of(owner, steps)?,
                    first: first.clone(),
                    second: second.clone(),
                }),
                _ => None,
            });
        }
        Ok((options, initial, moments))
    }
}

/// Updates the rows of a sparse gradient, and their means; all others are unchanged.
///
/// # Errors
/// As [`Rows::of`].
pub(super) fn lazy_step(p: &Tensor, grad: &Tensor, m: &Moments, step: Step) -> Result<()> {
    let grad = grad.as_coordinates()?;
    // One op for gradients with one sparse dimension, whose rows may be in any order: nothing is coalesced.
    if grad.sparse_dim()? == 1
        && adam_rows::in_place(
            [p, &m.first, &m.second],
            &grad.indices()?.select(0, 0)?,
            &grad.values()?,
            step,
        )?
    {
        return Ok(());
    }
    // Halves are computed in f32, and rounded where they are written.
    let dtype = p.dtype();
    let rows = Rows::of(&grad)?;
    let values = widened(&rows.values)?;
    let read = |table| widened(&rows.read(table)?);
    let write = |table, new: &Tensor| rows.write(table, &cast(new.clone(), dtype)?);
    let Step { beta1, beta2, eps, rate, decay, shrink } = step;
    let moved = read(p)?;
    let decayed;
    let grad = if decay == 0.0 {
        &values
    } else {
        decayed = values.add_with(&moved, decay)?;
        &decayed
    };
    if shrink != 1.0 {
        moved.mul_(shrink)?;
    }
    let first = read(&m.first)?.mul_(beta1)?.add_with_(grad, 1.0 - beta1)?;
    write(&m.first, &first)?;
    let second = read(&m.second)?.mul_(beta2)?.addcmul_with_(grad, grad, 1.0 - beta2)?;
    write(&m.second, &second)?;
    let denominator = second.sqrt_()?.add_(eps)?;
    write(p, &moved.addcdiv_with_(&first, &denominator, -rate)?)
}
