//! `rnn_layer_backward`: backpropagation through time.
//!
//! A step is one pass over the gates, then one product of their gradients with the weight. The gradient of a weight is one product
//! over the rows of all steps.

use super::{Mode, Number, PIECE, Step, Weight, optional, parts, pieces, steps};
use crate::kernels::buffer::Buffer;
use crate::kernels::exponential::Tanh;
use crate::kernels::product::{Matrix, Tile, multiply_one};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Error, Lanes, parallel_for};

/// Columns whose sums over all rows one thread computes.
const COLUMNS: usize = 64;

/// `grad * s * (1 - s)`
#[inline(always)]
fn of_sigmoid<T: Number>(grad: T, s: T) -> T {
    grad * (s * (T::ONE - s))
}

/// `grad * (1 - t^2)`
#[inline(always)]
fn of_tanh<T: Number>(grad: T, t: T) -> T {
    grad * (T::ONE - t * t)
}

/// One piece of a row of a step.
struct Piece<'a, T> {
    /// The gradient of the output of the cell.
    grad: &'a [T],
    /// The output of the step, and the saved values.
    output: &'a [T],
    saved: [&'a [T]; 5],
    /// The state of the step before, or of an LSTM its cell state.
    before: &'a [T],
    /// The gradients of the gates.
    of_x: [&'a mut [T]; 4],
}

impl<T: Number> Piece<'_, T> {
    fn elman(&mut self, relu: bool) {
        let to = &mut self.of_x[0];
        if relu {
            zip_wide((self.grad, self.output), to, |(g, h)| if h <= T::ZERO { T::ZERO } else { g });
        } else {
            zip_wide((self.grad, self.output), to, |(g, h)| of_tanh(g, h));
        }
    }

    /// `inner` is the gradient of the product for `n`, `through` the part of the state's gradient that no product has.
    fn gru(&mut self, inner: &mut [T], through: &mut [T]) {
        let [reset, update, product, new, _] = self.saved;
        let [of_reset, of_update, of_new, _] = &mut self.of_x;
        zip_wide((self.grad, update, new), of_new, |(g, z, n)| of_tanh(g * (T::ONE - z), n));
        let mut buffer = [T::ZERO; PIECE];
        let distance = &mut buffer[..new.len()];
        zip_wide((self.before, new), distance, |(h, n)| h - n);
        zip_wide((self.grad, update, &distance[..]), of_update, |(g, z, d)| of_sigmoid(g * d, z));
        zip_wide((&of_new[..], product, reset), of_reset, |(g, p, r)| of_sigmoid(g * p, r));
        zip_wide((&of_new[..], reset), inner, |(g, r)| g * r);
        zip_wide((self.grad, update), through, |(g, z)| g * z);
    }

    /// `of_cell` is the gradient of the cell state after the step, and becomes that of the state before it.
    fn lstm(&mut self, of_cell: &mut [T]) {
        let [input, forget, candidate, gate, cell] = self.saved;
        let [of_input, of_forget, of_candidate, of_gate] = &mut self.of_x;
        let n = cell.len();
        let mut buffers = [[T::ZERO; PIECE]; 3];
        let [squashed, slope, all] = buffers.each_mut().map(|t| &mut t[..n]);
        zip_wide((cell,), squashed, |(c,)| c.apply::<Tanh>());
        zip_wide((self.grad, gate, &squashed[..]), slope, |(g, o, t)| of_tanh(g * o, t));
        zip_wide((&of_cell[..], &slope[..]), all, |(a, b)| a + b);
        zip_wide((self.grad, gate, &squashed[..]), of_gate, |(g, o, t)| of_sigmoid(g * t, o));
        zip_wide((&all[..], input, candidate), of_input, |(d, i, g)| of_sigmoid(d * g, i));
        zip_wide((&all[..], forget, self.before), of_forget, |(d, f, c)| of_sigmoid(d * c, f));
        zip_wide((&all[..], input, candidate), of_candidate, |(d, i, g)| of_tanh(d * i, g));
        zip_wide((&all[..], forget), of_cell, |(d, f)| d * f);
    }
}

/// The rows of a state before a step: those of the step before it in `all`, and initial ones of sequences that begin.
struct Before<'a, T> {
    step: Step,
    all: &'a [T],
    /// The distance of rows in `all`, and the first column.
    layout: (usize, usize),
    initial: &'a [T],
    width: usize,
}

impl<T> Before<'_, T> {
    fn row(&self, row: usize) -> &[T] {
        let (step, column) = self.layout;
        if row < self.step.rows {
            &self.all[(self.step.first + row) * step + column..][..self.width]
        } else {
            &self.initial[row * self.width..][..self.width]
        }
    }
}

/// `to = a^T b` of matrices with dense rows, `[inner, rows]` and `[inner, columns]`.
fn transposed_product<T: Number>(
    to: &mut [T],
    (a, rows): (&[T], usize),
    (b, columns): (&[T], usize),
) -> Result<(), Error> {
    if to.len() != rows * columns || a.len() / rows != b.len() / columns {
        return Err(Error::Unsupported { what: "weights of these sizes".into() });
    }
    let whole = Tile {
        rows,
        columns,
        inner: a.len() / rows,
        a: Matrix { data: a.as_ptr(), row: 1, column: rows },
        b: Matrix { data: b.as_ptr(), row: columns, column: 1 },
        out: Matrix { data: to.as_mut_ptr(), row: columns, column: 1 },
        input: None,
        alpha: T::ONE,
    };
    // SAFETY: the slices have the elements, as checked above, and `to` is uniquely borrowed.
    unsafe { multiply_one(&whole) }
}

/// The sums over the rows, in f64, so that a long sum is accurate.
fn row_sums<T: Number>(from: &[T], to: &mut [T]) -> Result<(), Error> {
    let columns = to.len();
    // SAFETY: the address is used within `to`, which outlives the loop; each block has its own columns.
    let to = unsafe { Lanes::new(to.as_mut_ptr()) };
    parallel_for(columns.div_ceil(COLUMNS), 4, |blocks| {
        for begin in blocks.map(|block| block * COLUMNS) {
            let n = COLUMNS.min(columns - begin);
            let mut sums = [0.0f64; COLUMNS];
            for row in from.chunks_exact(columns) {
                for (sum, x) in sums.iter_mut().zip(&row[begin..begin + n]) {
                    *sum += x.to_f64();
                }
            }
            // SAFETY: as above.
            let to = unsafe { to.slice_mut(begin, n) };
            to.iter_mut().zip(&sums).for_each(|(to, sum)| *to = T::from_f64(*sum));
        }
    })
}

fn rnn_layer_backward<T: Number>(call: &Call) -> Result<(), Error> {
    let mode = Mode::argument(call, 11)?;
    let (initial, weight) = (call.contiguous::<T>(3)?, call.contiguous::<T>(5)?);
    let (grad_output, grad_hidden) = (optional::<T>(call, 0)?, optional::<T>(call, 1)?);
    let (grad_cell, initial_cell) = (optional::<T>(call, 2)?, optional::<T>(call, 4)?);
    let projection = optional::<T>(call, 6)?;
    let (output, saved) = (call.contiguous::<T>(7)?, call.contiguous::<T>(8)?);
    let sizes = call.output(1)?.sizes();
    let (batch, out) = (sizes[0] as usize, sizes[1] as usize);
    let columns = weight.len() / out;
    let (hidden, rows_of_all) = (columns / mode.gates(), output.len() / out);
    let width = mode.saved() * hidden;

    let mut of_x = call.contiguous_out::<T>(0)?;
    let (mut of_hidden, mut of_cell) = (call.contiguous_out::<T>(1)?, call.contiguous_out::<T>(2)?);
    for (to, from) in [(&mut of_hidden, &grad_hidden), (&mut of_cell, &grad_cell)] {
        match from {
            Some(from) => to.copy_from_slice(from),
            None => to.fill(T::ZERO),
        }
    }
    // Of a GRU the gradient of the state's product differs from that of the projected input.
    let is_gru = mode == Mode::Gru;
    let mut of_product = Buffer::zeroed(if is_gru { rows_of_all * columns } else { 0 })?;
    let mut through = Buffer::zeroed(if is_gru { batch * out } else { 0 })?;
    let mut states = Buffer::zeroed(rows_of_all * out)?;
    // Of a projection: the gradients of the outputs, the outputs of the cell, the gradients of these of one step.
    let projected = if projection.is_some() { rows_of_all } else { 0 };
    let (mut of_outputs, mut raw) = (Buffer::zeroed(projected * out)?, Buffer::zeroed(projected * hidden)?);
    let mut of_raw = Buffer::zeroed(if projection.is_some() { batch * hidden } else { 0 })?;

    let right = Weight::new(&weight, columns, false, batch)?;
    let projection = projection.as_ref().map(|t| Weight::new(t, out, false, batch)).transpose()?;
    let all = steps(call.ints(9)?, call.bool(10)?);
    for (i, &Step { first, rows }) in all.iter().enumerate().rev() {
        let step = i.checked_sub(1).map_or(Step { first: 0, rows: 0 }, |i| all[i]);
        let before = Before { step, all: &output[..], layout: (out, 0), initial: &initial[..], width: out };
        for (row, to) in states[first * out..][..rows * out].chunks_exact_mut(out).enumerate() {
            to.copy_from_slice(before.row(row));
        }
        if let Some(grad) = &grad_output {
            let grad = &grad[first * out..][..rows * out];
            of_hidden.iter_mut().zip(grad).for_each(|(to, grad)| *to += *grad);
        }
        if let Some(projection) = &projection {
            of_outputs[first * out..][..rows * out].copy_from_slice(&of_hidden[..rows * out]);
            projection.product(rows, &of_hidden[..rows * out], (&mut of_raw, hidden), None)?;
        }
        let grads = if projection.is_some() { &of_raw[..] } else { &of_hidden[..] };
        let cells = initial_cell.as_ref().map(|initial| Before {
            step,
            all: &saved[..],
            layout: (width, 4 * hidden),
            initial: &initial[..],
            width: hidden,
        });
        // SAFETY: the addresses are used within the slices, which outlive the loop; each piece has its own elements.
        let (to_x, to_inner, to_through, to_cell, to_raw) = unsafe {
            (
                Lanes::new(of_x[first * columns..].as_mut_ptr()),
                Lanes::new(of_product.as_mut_ptr()),
                Lanes::new(through.as_mut_ptr()),
                Lanes::new(of_cell.as_mut_ptr()),
                Lanes::new(raw.as_mut_ptr()),
            )
        };
        let has_projection = projection.is_some();
        pieces(rows, hidden, |row, at| {
            let (n, begin) = (at.len(), row * hidden + at.start);
            let own = (first + row) * out;
            let values = saved.get((first + row) * width..(first + row + 1) * width).unwrap_or(&[]);
            let state = cells.as_ref().unwrap_or(&before).row(row);
            // SAFETY: as above; a piece has its own columns of each gate.
            let of_x = unsafe {
                let part = |k: usize| to_x.slice_mut(row * columns + k * hidden + at.start, n);
                std::array::from_fn(|k| if k < mode.gates() { part(k) } else { &mut [][..] })
            };
            let mut piece = Piece {
                grad: &grads[begin..begin + n],
                output: if has_projection { &[] } else { &output[own + at.start..own + at.end] },
                saved: parts(values, hidden, &at),
                before: &state[at.clone()],
                of_x,
            };
            match mode {
                Mode::Tanh | Mode::Relu => piece.elman(mode == Mode::Relu),
                Mode::Gru => {
                    // SAFETY: as above.
                    let part = |k: usize| unsafe {
                        to_inner.slice_mut((first + row) * columns + k * hidden + at.start, n)
                    };
                    // SAFETY: as above.
                    piece.gru(part(2), unsafe { to_through.slice_mut(begin, n) });
                    part(0).copy_from_slice(piece.of_x[0]);
                    part(1).copy_from_slice(piece.of_x[1]);
                }
                Mode::Lstm => {
                    // SAFETY: as above.
                    piece.lstm(unsafe { to_cell.slice_mut(begin, n) });
                    if has_projection {
                        // SAFETY: as above.
                        let to = unsafe { to_raw.slice_mut((first + row) * hidden + at.start, n) };
                        let [_, _, _, gate, cell] = piece.saved;
                        zip_wide((gate, cell), to, |(o, c)| o * c.apply::<Tanh>());
                    }
                }
            }
        })?;
        let of_products = if is_gru { &of_product[..] } else { &of_x[..] };
        let added = is_gru.then_some(&through[..]);
        right.product(rows, &of_products[first * columns..], (&mut of_hidden, out), added)?;
    }
    let of_products = if is_gru { &of_product[..] } else { &of_x[..] };
    transposed_product(&mut call.contiguous_out::<T>(3)?, (of_products, columns), (&states, out))?;
    row_sums(of_products, &mut call.contiguous_out::<T>(4)?)?;
    if projection.is_some() {
        transposed_product(&mut call.contiguous_out::<T>(5)?, (&of_outputs, out), (&raw, hidden))?;
    }
    Ok(())
}

crate::kernels::kernel!("rnn_layer_backward", "OOOTOTOTTIbS>TTTTTT", rnn_layer_backward, [f32, f64]);
