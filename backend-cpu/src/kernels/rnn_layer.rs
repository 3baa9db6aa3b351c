//! `rnn_layer` and `rnn_layer_backward`
//!
//! Each step is one product of the state with its weight for all gates, then one pass over the gates. The weight is transposed
//! once per call if the product is faster with the other order of its elements. The pass works on pieces of a row, whose gates
//! stay in L1.

pub(super) mod backward;

use super::activations::Sigmoid;
use super::buffer::Buffer;
use super::exponential::Tanh;
use super::number::Apply;
use super::product::{Matrix, Multiply, Tile, multiply_one};
use keyway_cpu_loops::{CallExt, transpose, zip_wide};
use keyway_sdk::author::{Call, Error, Lanes, Plain, Real, Widen, parallel_for};
use std::ops::Range;

/// Elements of a gate that are computed together.
pub const PIECE: usize = 128;
/// The minimum number of elements of a gate per thread.
const GRAIN: usize = 2048;
/// The maximum number of sequences whose products read the weight by rows of the reduction dimension, see
/// [`skinny`](super::skinny).
const FEW: usize = 32;

/// The element types.
pub trait Number: Multiply + Apply + Real + Plain + Widen<Wide = Self> {}
impl Number for f32 {}
impl Number for f64 {}

/// A recurrence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Tanh,
    Relu,
    Gru,
    Lstm,
}

impl Mode {
    pub fn argument(call: &Call, i: usize) -> Result<Mode, Error> {
        match call.str(i)? {
            "rnn_tanh" => Ok(Mode::Tanh),
            "rnn_relu" => Ok(Mode::Relu),
            "gru" => Ok(Mode::Gru),
            "lstm" => Ok(Mode::Lstm),
            other => Err(Error::Unsupported { what: format!("mode `{other}`") }),
        }
    }

    pub fn gates(self) -> usize {
        match self {
            Mode::Tanh | Mode::Relu => 1,
            Mode::Gru => 3,
            Mode::Lstm => 4,
        }
    }

    /// The width of a row of saved values, in multiples of the hidden width.
    pub fn saved(self) -> usize {
        match self {
            Mode::Tanh | Mode::Relu => 0,
            Mode::Gru => 4,
            Mode::Lstm => 5,
        }
    }
}

/// A step: the first of its rows, and their number.
#[derive(Clone, Copy)]
pub struct Step {
    pub first: usize,
    pub rows: usize,
}

/// The steps in the order of the recurrence.
pub fn steps(batches: &[i64], reverse: bool) -> Vec<Step> {
    let mut first = 0;
    let mut steps: Vec<Step> = Vec::with_capacity(batches.len());
    for &rows in batches {
        steps.push(Step { first, rows: rows as usize });
        first += rows as usize;
    }
    if reverse {
        steps.reverse();
    }
    steps
}

/// The right operand of a product, transposed in memory if that is faster.
pub struct Weight<T> {
    matrix: Matrix<*const T>,
    inner: usize,
    columns: usize,
    _copy: Option<Buffer<T>>,
}

impl<T: Number> Weight<T> {
    /// The operand `[inner, columns]` that a matrix of dense rows is, or with `transposed` its transpose, for products with
    /// `batch` rows.
    pub fn new(weight: &[T], rows: usize, transposed: bool, batch: usize) -> Result<Self, Error> {
        let width = weight.len() / rows.max(1);
        let (inner, columns) = if transposed { (width, rows) } else { (rows, width) };
        let given = match transposed {
            true => Matrix { data: weight.as_ptr(), row: 1, column: width },
            false => Matrix { data: weight.as_ptr(), row: width, column: 1 },
        };
        // Few rows are multiplied fastest by a matrix whose columns are dense.
        if transposed == (batch <= FEW) {
            return Ok(Weight { matrix: given, inner, columns, _copy: None });
        }
        let mut copy = Buffer::zeroed(weight.len())?;
        // SAFETY: source and copy have `rows * width` elements.
        unsafe { transpose(copy.as_mut_ptr(), rows, weight.as_ptr(), width, rows, width) };
        let matrix = match transposed {
            true => Matrix { data: copy.as_ptr(), row: rows, column: 1 },
            false => Matrix { data: copy.as_ptr(), row: 1, column: rows },
        };
        Ok(Weight { matrix, inner, columns, _copy: Some(copy) })
    }

    /// `to = from * self (+ added)`, for `rows` rows; `to` has rows `step` elements apart.
    pub fn product(
        &self,
        rows: usize,
        from: &[T],
        (to, step): (&mut [T], usize),
        added: Option<&[T]>,
    ) -> Result<(), Error> {
        if rows == 0 {
            return Ok(());
        }
        let needed = (rows - 1) * step + self.columns;
        if from.len() < rows * self.inner
            || to.len() < needed
            || added.is_some_and(|t| t.len() < rows * self.columns)
        {
            return Err(Error::Unsupported { what: "states of these sizes".into() });
        }
        let matrix = |data: *const T, row| Matrix { data, row, column: 1 };
        let whole = Tile {
            rows,
            columns: self.columns,
            inner: self.inner,
            a: matrix(from.as_ptr(), self.inner),
            b: self.matrix,
            out: Matrix { data: to.as_mut_ptr(), row: step, column: 1 },
            input: added.map(|t| (matrix(t.as_ptr(), self.columns), T::ONE)),
            alpha: T::ONE,
        };
        // SAFETY: the slices have the elements, as checked above, and `to` is uniquely borrowed.
        unsafe { multiply_one(&whole) }
    }
}

/// Calls `body` with a row and a range of its columns, for all rows; in parallel.
pub fn pieces(rows: usize, width: usize, body: impl Fn(usize, Range<usize>) + Sync) -> Result<(), Error> {
    let across = width.div_ceil(PIECE);
    parallel_for(rows * across, GRAIN.div_ceil(PIECE.min(width.max(1))), |units| {
        for unit in units {
            let begin = unit % across * PIECE;
            body(unit / across, begin..width.min(begin + PIECE));
        }
    })
}

/// These columns of each of up to `N` gates of a row; missing gates are empty.
pub fn parts<'a, T, const N: usize>(row: &'a [T], hidden: usize, at: &Range<usize>) -> [&'a [T]; N] {
    std::array::from_fn(|k| row.get(k * hidden + at.start..k * hidden + at.end).unwrap_or(&[]))
}

/// The optional tensor argument `i`.
pub fn optional<'a, T: Number>(
    call: &Call<'a>,
    i: usize,
) -> Result<Option<keyway_cpu_loops::Contiguous<'a, T>>, Error> {
    if call.is_none(i)? { Ok(None) } else { call.contiguous::<T>(i).map(Some) }
}

/// One piece of a row: the gates, each computed from the projected input, the product of the state and the bias.
struct Piece<'a, T> {
    x: [&'a [T]; 4],
    /// The products of the state; replaced by the values for backward.
    values: [&'a mut [T]; 5],
    bias: [&'a [T]; 4],
}

impl<T: Number> Piece<'_, T> {
    /// Gate `k`, by its function.
    fn gate(&self, k: usize, to: &mut [T], f: impl Fn(T) -> T + Sync) {
        zip_wide((self.x[k], &self.values[k][..], self.bias[k]), to, |(x, p, b)| f(x + (p + b)));
    }

    fn save(&mut self, values: &[&[T]]) {
        self.values.iter_mut().zip(values).for_each(|(to, from)| to.copy_from_slice(from));
    }

    /// `h' = tanh(x + p)`, or `relu`; `NaN` stays `NaN`.
    fn elman(&self, h: &mut [T], relu: bool) {
        if relu {
            self.gate(0, h, |x| if x < T::ZERO { T::ZERO } else { x });
        } else {
            self.gate(0, h, |x| x.apply::<Tanh>());
        }
    }

    /// `r, z = σ(..)`, `n = tanh(x + r * p)`, `h' = (1 - z) * n + z * h`.
    fn gru(&mut self, h: &mut [T], save: bool) {
        let n = h.len();
        let mut all = [[T::ZERO; PIECE]; 4];
        let [reset, update, inner, new] = all.each_mut().map(|t| &mut t[..n]);
        self.gate(0, reset, |x| x.apply::<Sigmoid>());
        self.gate(1, update, |x| x.apply::<Sigmoid>());
        zip_wide((&self.values[2][..], self.bias[2]), inner, |(p, b)| p + b);
        zip_wide((self.x[2], &reset[..], &inner[..]), new, |(x, r, p)| (x + r * p).apply::<Tanh>());
        let mut old = [T::ZERO; PIECE];
        old[..n].copy_from_slice(h);
        zip_wide((&new[..], &update[..], &old[..n]), h, |(new, update, old)| new + update * (old - new));
        if save {
            self.save(&[reset, update, inner, new]);
        }
    }

    /// `i, f, o = σ(..)`, `g = tanh(..)`, `c' = f * c + i * g`, `h' = o * tanh(c')`.
    fn lstm(&mut self, c: &mut [T], h: &mut [T], save: bool) {
        let n = h.len();
        let mut all = [[T::ZERO; PIECE]; 5];
        let [input, forget, candidate, output, product] = all.each_mut().map(|t| &mut t[..n]);
        self.gate(0, input, |x| x.apply::<Sigmoid>());
        self.gate(1, forget, |x| x.apply::<Sigmoid>());
        self.gate(2, candidate, |x| x.apply::<Tanh>());
        self.gate(3, output, |x| x.apply::<Sigmoid>());
        zip_wide((&input[..], &candidate[..]), product, |(i, g)| i * g);
        let mut old = [T::ZERO; PIECE];
        old[..n].copy_from_slice(c);
        zip_wide((&forget[..], &old[..n], &product[..]), c, |(f, c, p)| f * c + p);
        zip_wide((&output[..], &c[..]), h, |(o, c)| o * c.apply::<Tanh>());
        if save {
            self.save(&[input, forget, candidate, output, c]);
        }
    }
}

fn rnn_layer<T: Number>(call: &Call) -> Result<(), Error> {
    let mode = Mode::argument(call, 8)?;
    let (x, initial, weight) = (call.contiguous::<T>(0)?, call.contiguous::<T>(1)?, call.contiguous::<T>(3)?);
    let sizes = call.output(1)?.sizes();
    let (batch, out) = (sizes[0] as usize, sizes[1] as usize);
    let columns = weight.len() / out;
    let hidden = columns / mode.gates();
    let (initial_cell, given_bias) = (optional::<T>(call, 2)?, optional::<T>(call, 4)?);
    let projection = optional::<T>(call, 5)?;
    let save = call.bool(9)? && mode.saved() > 0;
    let zeros;
    let bias: &[T] = match &given_bias {
        Some(bias) => bias,
        None => {
            zeros = Buffer::zeroed(columns)?;
            &zeros
        }
    };
    let mut output = call.contiguous_out::<T>(0)?;
    let (mut h, mut c) = (call.contiguous_out::<T>(1)?, call.contiguous_out::<T>(2)?);
    let mut saved = call.contiguous_out::<T>(3)?;
    h.copy_from_slice(&initial);
    if let Some(initial) = &initial_cell {
        c.copy_from_slice(initial);
    }
    let weight = Weight::new(&weight, columns, true, batch)?;
    let projection = projection.as_ref().map(|t| Weight::new(t, out, true, batch)).transpose()?;
    let width = if save { mode.saved() * hidden } else { columns };
    let mut scratch = Buffer::zeroed(if save { 0 } else { batch * columns })?;
    let mut raw = Buffer::zeroed(if projection.is_some() { batch * hidden } else { 0 })?;
    for Step { first, rows } in steps(call.ints(6)?, call.bool(7)?) {
        let values =
            if save { &mut saved[first * width..][..rows * width] } else { &mut scratch[..rows * width] };
        weight.product(rows, &h[..rows * out], (values, width), None)?;
        let state = if projection.is_some() { &mut raw } else { &mut h[..] };
        // SAFETY: the addresses are used within the slices, which outlive the loop; each piece has its own elements.
        let (values, state, cells) = unsafe {
            (Lanes::new(values.as_mut_ptr()), Lanes::new(state.as_mut_ptr()), Lanes::new(c.as_mut_ptr()))
        };
        let x = &x[first * columns..][..rows * columns];
        pieces(rows, hidden, |row, at| {
            let (begin, n) = (row * hidden + at.start, at.len());
            // SAFETY: as above; a piece has its own columns of each gate.
            let (values, h) = unsafe {
                let part = |k: usize| values.slice_mut(row * width + k * hidden + at.start, n);
                let values =
                    std::array::from_fn(|k| if (k + 1) * hidden <= width { part(k) } else { &mut [] });
                (values, state.slice_mut(begin, n))
            };
            let mut piece = Piece {
                x: parts(&x[row * columns..][..columns], hidden, &at),
                values,
                bias: parts(bias, hidden, &at),
            };
            match mode {
                Mode::Tanh | Mode::Relu => piece.elman(h, mode == Mode::Relu),
                Mode::Gru => piece.gru(h, save),
                // SAFETY: as above; an LSTM has a cell state for each unit.
                Mode::Lstm => piece.lstm(unsafe { cells.slice_mut(begin, n) }, h, save),
            }
        })?;
        if let Some(projection) = &projection {
            projection.product(rows, &raw[..rows * hidden], (&mut h[..rows * out], out), None)?;
        }
        output[first * out..][..rows * out].copy_from_slice(&h[..rows * out]);
    }
    Ok(())
}

super::kernel!("rnn_layer", "TTOTOOIbSb>TTTT", rnn_layer, [f32, f64]);
