//! The decompositions: tensor ops for each step.

use super::checks::{Layer, Mode};
use crate::Tensor;
use crate::error::Result;

/// The results of the forward pass.
pub(super) struct Made {
    /// The outputs of all steps, `[rows, out]`.
    pub(super) output: Tensor,
    /// The last states.
    pub(super) hidden: Tensor,
    pub(super) cell: Tensor,
    /// The values for backward, `[rows, Mode::saved * hidden]`; `None` for modes that need none.
    pub(super) saved: Option<Tensor>,
}

/// The gradients of the results.
pub(super) struct Incoming {
    pub(super) output: Option<Tensor>,
    pub(super) hidden: Option<Tensor>,
    pub(super) cell: Option<Tensor>,
    /// Only if the gradients are differentiated again.
    pub(super) saved: Option<Tensor>,
}

/// The gradients of the arguments.
pub(super) struct Gradients {
    pub(super) projected: Tensor,
    pub(super) hidden: Tensor,
    pub(super) cell: Tensor,
    pub(super) weight_hh: Tensor,
    pub(super) bias_hh: Tensor,
    pub(super) weight_hr: Option<Tensor>,
}

/// The first `rows` of a state.
fn head(t: &Tensor, rows: usize) -> Result<Tensor> {
    t.narrow(0, 0, rows)
}

/// The state with other first rows.
fn with_head(made: Tensor, t: &Tensor) -> Result<Tensor> {
    let (rows, all) = (made.shape()[0], t.shape()[0]);
    if rows == all { Ok(made) } else { Tensor::cat(&[made, t.narrow(0, rows, all - rows)?], 0) }
}

/// Joins the rows of the steps, which are in the order of the recurrence.
fn joined(mut parts: Vec<Tensor>, reverse: bool, width: usize, like: &Tensor) -> Result<Tensor> {
    if parts.is_empty() {
        return like.new_zeros((0, width));
    }
    if reverse {
        parts.reverse();
    }
    Tensor::cat(&parts, 0)
}

/// Part `i` of `width` columns.
fn part(t: &Tensor, i: usize, width: usize) -> Result<Tensor> {
    t.narrow(1, i * width, width)
}

/// The sum, if there is a second addend.
fn plus(t: Tensor, more: Option<&Tensor>) -> Result<Tensor> {
    match more {
        Some(more) => t.add(more),
        None => Ok(t),
    }
}

impl Layer {
    fn width(&self) -> usize {
        self.weight_hh.shape()[0] / self.mode.gates()
    }

    /// The forward pass over the projected input, `[rows, gates * hidden]`.
    pub(super) fn forward(&self, projected: &Tensor) -> Result<Made> {
        let (mut hidden, mut cell) = (self.hidden.clone(), self.cell.clone());
        let (mut outputs, mut saved) = (Vec::new(), Vec::new());
        for &(offset, rows) in &self.steps {
            let (x, h) = (projected.narrow(0, offset, rows)?, head(&hidden, rows)?);
            let product = h.linear(&self.weight_hh, self.bias_hh.as_ref())?;
            let made = match self.mode {
                Mode::Tanh => x.add(&product)?.tanh()?,
                Mode::Relu => x.add(&product)?.relu()?,
                Mode::Gru => {
                    let (x, product) = (x.chunk(3, 1)?, product.chunk(3, 1)?);
                    let reset = x[0].add(&product[0])?.sigmoid()?;
                    let update = x[1].add(&product[1])?.sigmoid()?;
                    let new = x[2].addcmul(&reset, &product[2])?.tanh()?;
                    let made = new.addcmul(&update, &h.sub(&new)?)?;
                    saved.push(Tensor::cat(&[&reset, &update, &product[2], &new], 1)?);
                    made
                }
                Mode::Lstm => {
                    let gates = x.add(&product)?.chunk(4, 1)?;
                    let (input, forget) = (gates[0].sigmoid()?, gates[1].sigmoid()?);
                    let (candidate, output) = (gates[2].tanh()?, gates[3].sigmoid()?);
                    let c = forget.mul(&head(&cell, rows)?)?.addcmul(&input, &candidate)?;
                    let made = output.mul(&c.tanh()?)?;
                    saved.push(Tensor::cat(&[&input, &forget, &candidate, &output, &c], 1)?);
                    cell = with_head(c, &cell)?;
                    match &self.weight_hr {
                        Some(weight) => made.linear(weight, None)?,
                        None => made,
                    }
                }
            };
            outputs.push(made.clone());
            hidden = with_head(made, &hidden)?;
        }
        let saved = match self.mode.saved() {
            0 => None,
            parts => Some(joined(saved, self.reverse, parts * self.width(), projected)?),
        };
        let output = joined(outputs, self.reverse, hidden.shape()[1], projected)?;
        Ok(Made { output, hidden, cell, saved })
    }

    /// The rows of a state before step `i`: those of the step before it, and initial ones of sequences that begin.
    fn before(&self, i: usize, all: &Tensor, initial: &Tensor) -> Result<Tensor> {
        let rows = self.steps[i].1;
        let Some(&(offset, before)) = i.checked_sub(1).map(|i| &self.steps[i]) else {
            return head(initial, rows);
        };
        let there = all.narrow(0, offset, before.min(rows))?;
        if before >= rows {
            return Ok(there);
        }
        Tensor::cat(&[there, initial.narrow(0, before, rows - before)?], 0)
    }

    /// The backward pass, by the outputs and the saved values of the forward pass.
    pub(super) fn backward(
        &self,
        output: &Tensor,
        saved: Option<&Tensor>,
        incoming: &Incoming,
    ) -> Result<Gradients> {
        let given = |grad: &Option<Tensor>, like: &Tensor| match grad {
            Some(grad) => Ok(grad.clone()),
            None => like.zeros_like(),
        };
        let width = self.width();
        let mut of_hidden = given(&incoming.hidden, &self.hidden)?;
        let mut of_cell = given(&incoming.cell, &self.cell)?;
        let cells = match (self.mode, saved) {
            (Mode::Lstm, Some(saved)) => part(saved, 4, width)?,
            _ => output.clone(),
        };
        let (mut of_projected, mut of_products, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let (mut of_outputs, mut unprojected) = (Vec::new(), Vec::new());
        for (i, &(offset, rows)) in self.steps.iter().enumerate().rev() {
            let narrow = |t: &Tensor| t.narrow(0, offset, rows);
            let own = incoming.output.as_ref().map(narrow).transpose()?;
            let grad = plus(head(&of_hidden, rows)?, own.as_ref())?;
            let h = self.before(i, output, &self.hidden)?;
            let saved = saved.map(narrow).transpose()?;
            let extra = incoming.saved.as_ref().map(narrow).transpose()?;
            let value = |k: usize| match &saved {
                Some(saved) => part(saved, k, width),
                None => narrow(output),
            };
            // The gradient of a saved value, if it has one.
            let through = |t: Tensor, k: usize| match &extra {
                Some(extra) => t.add(&part(extra, k, width)?),
                None => Ok(t),
            };
            let of_sigmoid = |grad: Tensor, s: &Tensor| grad.mul(&s.sub(&s.square()?)?);
            let of_tanh = |grad: &Tensor, t: &Tensor| grad.mul(&t.square()?.neg()?.add(1)?);
            let (of_x, of_product, kept) = match self.mode {
                Mode::Tanh => {
                    let made = of_tanh(&grad, &narrow(output)?)?;
                    (made.clone(), made, None)
                }
                Mode::Relu => {
                    let made = grad.masked_fill(&narrow(output)?.le(0)?, 0)?;
                    (made.clone(), made, None)
                }
                Mode::Gru => {
                    let [reset, update, product, new] = [value(0)?, value(1)?, value(2)?, value(3)?];
                    let of_new = through(grad.mul(&update.neg()?.add(1)?)?, 3)?;
                    let of_new = of_tanh(&of_new, &new)?;
                    let of_update = of_sigmoid(through(grad.mul(&h.sub(&new)?)?, 1)?, &update)?;
                    let of_reset = of_sigmoid(through(of_new.mul(&product)?, 0)?, &reset)?;
                    let inner = through(of_new.mul(&reset)?, 2)?;
                    let of_x = Tensor::cat(&[&of_reset, &of_update, &of_new], 1)?;
                    (of_x, Tensor::cat(&[&of_reset, &of_update, &inner], 1)?, Some(grad.mul(&update)?))
                }
                Mode::Lstm => {
                    let [input, forget, candidate, gate, c] =
                        [value(0)?, value(1)?, value(2)?, value(3)?, value(4)?];
                    let squashed = c.tanh()?;
                    let made = match &self.weight_hr {
                        Some(weight) => {
                            of_outputs.push(grad.clone());
                            unprojected.push(gate.mul(&squashed)?);
                            grad.matmul(weight)?
                        }
                        None => grad,
                    };
                    let before = self.before(i, &cells, &self.cell)?;
                    let of_c = head(&of_cell, rows)?.add(&of_tanh(&made.mul(&gate)?, &squashed)?)?;
                    let of_c = through(of_c, 4)?;
                    let of_x = Tensor::cat(
                        &[
                            of_sigmoid(through(of_c.mul(&candidate)?, 0)?, &input)?,
                            of_sigmoid(through(of_c.mul(&before)?, 1)?, &forget)?,
                            of_tanh(&through(of_c.mul(&input)?, 2)?, &candidate)?,
                            of_sigmoid(through(made.mul(&squashed)?, 3)?, &gate)?,
                        ],
                        1,
                    )?;
                    of_cell = with_head(of_c.mul(&forget)?, &of_cell)?;
                    (of_x.clone(), of_x, None)
                }
            };
            let before = plus(of_product.matmul(&self.weight_hh)?, kept.as_ref())?;
            of_hidden = with_head(before, &of_hidden)?;
            of_projected.push(of_x);
            of_products.push(of_product);
            states.push(h);
        }
        // The steps ran against the order of the recurrence.
        let all = |parts, columns| joined(parts, !self.reverse, columns, output);
        let columns = self.weight_hh.shape()[0];
        let of_products = all(of_products, columns)?;
        let states = all(states, self.hidden.shape()[1])?;
        let weight_hr = match &self.weight_hr {
            None => None,
            Some(weight) => {
                let grads = all(of_outputs, weight.shape()[0])?;
                Some(grads.t()?.matmul(&all(unprojected, weight.shape()[1])?)?)
            }
        };
        Ok(Gradients {
            projected: all(of_projected, columns)?,
            hidden: of_hidden,
            cell: of_cell,
            weight_hh: of_products.t()?.matmul(&states)?,
            bias_hh: of_products.sum(0)?,
            weight_hr,
        })
    }
}
