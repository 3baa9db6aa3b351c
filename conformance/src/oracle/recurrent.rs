//! Recurrent layers, one sequence at a time.

use super::number::sum;
use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};
use keyway::DType;

/// A layer: its mode, its widths, and the rows of each sequence in the order of the recurrence.
struct Layer<'a> {
    mode: &'a str,
    gates: usize,
    hidden: usize,
    out: usize,
    sequences: Vec<Vec<usize>>,
    /// The number of rows.
    rows: usize,
    /// `[gates * hidden, out]`, and the projection of an LSTM, `[out, hidden]`.
    weight: Vec<f64>,
    projection: Option<Vec<f64>>,
}

fn logistic(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

fn array(dtype: DType, sizes: &[usize], values: Vec<f64>) -> Array {
    Array::new(dtype, sizes, values.into_iter().map(Number::Float).collect())
}

fn floats(inputs: &Inputs, i: usize) -> Result<Option<Vec<f64>>, Unknown> {
    Ok(inputs.optional_array(i)?.map(Array::floats))
}

/// `t[row * width..][..width]`
fn row(t: &[f64], row: usize, width: usize) -> &[f64] {
    &t[row * width..(row + 1) * width]
}

impl<'a> Layer<'a> {
    /// The layer of the arguments at these positions: state, weight, projection, batch sizes, direction, mode.
    fn new(inputs: &'a Inputs, at: [usize; 6]) -> Result<Layer<'a>, Unknown> {
        let [state, weight, projection, batches, reverse, mode] = at;
        let wrong = || Unknown("sizes that do not fit".into());
        let mode = inputs.str(mode)?;
        let gates = match mode {
            "rnn_tanh" | "rnn_relu" => 1,
            "gru" => 3,
            "lstm" => 4,
            _ => return Err(Unknown(format!("mode {mode}"))),
        };
        let &[count, out] = &inputs.array(state)?.sizes[..] else { return Err(wrong()) };
        let weight = inputs.array(weight)?;
        let projection = inputs.optional_array(projection)?;
        let hidden = weight.sizes.first().copied().unwrap_or(0) / gates;
        if weight.sizes != [gates * hidden, out]
            || projection.is_some_and(|t| t.sizes != [out, hidden] || mode != "lstm")
            || projection.is_none() && hidden != out
        {
            return Err(wrong());
        }
        let mut sequences = vec![Vec::new(); count];
        let (mut rows, mut last) = (0, count);
        for &step in inputs.ints(batches)? {
            let step = usize::try_from(step).map_err(|_| wrong())?;
            if step > last {
                return Err(wrong());
            }
            (0..step).for_each(|nth| sequences[nth].push(rows + nth));
            (rows, last) = (rows + step, step);
        }
        if inputs.bool(reverse)? {
            sequences.iter_mut().for_each(|steps| steps.reverse());
        }
        let projection = projection.map(Array::floats);
        Ok(Layer { mode, gates, hidden, out, sequences, rows, weight: weight.floats(), projection })
    }

    /// Columns of a row of the saved values.
    fn saved(&self) -> usize {
        self.hidden
            * match self.mode {
                "gru" => 4,
                "lstm" => 5,
                _ => 0,
            }
    }

    /// The product of a state with each row of the weight.
    fn product(&self, state: &[f64]) -> Vec<f64> {
        self.weight.chunks(self.out).map(|w| sum(w.iter().zip(state).map(|(w, h)| w * h))).collect()
    }

    /// The product of the gradients of all gates with each column of the weight.
    fn through(&self, grads: &[f64]) -> Vec<f64> {
        let column =
            |k: usize| sum(grads.iter().enumerate().map(|(g, grad)| grad * self.weight[g * self.out + k]));
        (0..self.out).map(column).collect()
    }
}

fn promoted(inputs: &Inputs, range: std::ops::Range<usize>) -> Result<DType, Unknown> {
    let which: Vec<usize> = range.filter(|&i| !inputs.is_none(i)).collect();
    inputs.promote(&which)
}

fn rnn_layer(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let layer = Layer::new(inputs, [1, 3, 5, 6, 7, 8])?;
    let dtype = promoted(inputs, 0..6)?;
    let (n, out, columns) = (layer.hidden, layer.out, layer.gates * layer.hidden);
    let projected = inputs.array(0)?;
    if projected.sizes != [layer.rows, columns] {
        return Err(Unknown("a projected input of another shape".into()));
    }
    let (projected, mut hidden) = (projected.floats(), inputs.array(1)?.floats());
    let mut cell = floats(inputs, 2)?.unwrap_or_default();
    let bias = floats(inputs, 4)?.unwrap_or_else(|| vec![0.0; columns]);
    let mut output = vec![0.0; layer.rows * out];
    let mut saved = vec![0.0; layer.rows * layer.saved()];
    for (nth, steps) in layer.sequences.iter().enumerate() {
        for &at in steps {
            let x = row(&projected, at, columns);
            let h = row(&hidden, nth, out).to_vec();
            let p: Vec<f64> = layer.product(&h).iter().zip(&bias).map(|(p, b)| p + b).collect();
            let to = &mut saved[at * layer.saved()..(at + 1) * layer.saved()];
            let mut made = vec![0.0; n];
            for j in 0..n {
                let gate = |k: usize| x[k * n + j] + p[k * n + j];
                made[j] = match layer.mode {
                    "rnn_tanh" => gate(0).tanh(),
                    "rnn_relu" => gate(0).max(0.0),
                    "gru" => {
                        let (r, z) = (logistic(gate(0)), logistic(gate(1)));
                        let new = (x[2 * n + j] + r * p[2 * n + j]).tanh();
                        for (k, value) in [r, z, p[2 * n + j], new].into_iter().enumerate() {
                            to[k * n + j] = value;
                        }
                        (1.0 - z) * new + z * h[j]
                    }
                    _ => {
                        let (i, f, o) = (logistic(gate(0)), logistic(gate(1)), logistic(gate(3)));
                        let g = gate(2).tanh();
                        let c = f * cell[nth * n + j] + i * g;
                        cell[nth * n + j] = c;
                        for (k, value) in [i, f, g, o, c].into_iter().enumerate() {
                            to[k * n + j] = value;
                        }
                        o * c.tanh()
                    }
                };
            }
            if let Some(weight) = &layer.projection {
                made = weight.chunks(n).map(|w| sum(w.iter().zip(&made).map(|(w, h)| w * h))).collect();
            }
            hidden[nth * out..(nth + 1) * out].copy_from_slice(&made);
            output[at * out..(at + 1) * out].copy_from_slice(&made);
        }
    }
    let count = layer.sequences.len();
    let cell_sizes: &[usize] = if layer.mode == "lstm" { &[count, n] } else { &[0] };
    let saved = match inputs.bool(9)? && layer.saved() > 0 {
        true => array(wide(dtype), &[layer.rows, layer.saved()], saved),
        false => array(wide(dtype), &[0], Vec::new()),
    };
    Ok(vec![
        array(dtype, &[layer.rows, out], output),
        array(dtype, &[count, out], hidden),
        array(dtype, cell_sizes, cell),
        saved,
    ])
}

/// Backpropagation through time (P. Werbos, 1990).
fn rnn_layer_backward(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let layer = Layer::new(inputs, [3, 5, 6, 9, 10, 11])?;
    let dtype = promoted(inputs, 0..8)?;
    let (n, out, columns) = (layer.hidden, layer.out, layer.gates * layer.hidden);
    let (initial, initial_cell) = (inputs.array(3)?.floats(), floats(inputs, 4)?.unwrap_or_default());
    let (output, saved) = (inputs.array(7)?.floats(), inputs.array(8)?.floats());
    if output.len() != layer.rows * out || saved.len() != layer.rows * layer.saved() {
        return Err(Unknown("results of another shape".into()));
    }
    let grad_output = floats(inputs, 0)?.unwrap_or_else(|| vec![0.0; output.len()]);
    let mut of_hidden = floats(inputs, 1)?.unwrap_or_else(|| vec![0.0; initial.len()]);
    let mut of_cell = floats(inputs, 2)?.unwrap_or_else(|| vec![0.0; initial_cell.len()]);
    let mut of_x = vec![0.0; layer.rows * columns];
    let (mut of_weight, mut of_bias) = (vec![0.0; columns * out], vec![0.0; columns]);
    let mut of_projection = layer.projection.as_ref().map(|_| vec![0.0; out * n]);
    for (nth, steps) in layer.sequences.iter().enumerate() {
        for (k, &at) in steps.iter().enumerate().rev() {
            let before = k.checked_sub(1).map(|k| steps[k]);
            let h = before.map_or(row(&initial, nth, out), |at| row(&output, at, out));
            let value = |k: usize, j: usize| saved[at * layer.saved() + k * n + j];
            let grad: Vec<f64> =
                (0..out).map(|k| of_hidden[nth * out + k] + grad_output[at * out + k]).collect();
            let mut of_made = grad.clone();
            if let (Some(weight), Some(to)) = (&layer.projection, &mut of_projection) {
                of_made = (0..n).map(|j| sum((0..out).map(|k| grad[k] * weight[k * n + j]))).collect();
                for (k, j) in (0..out).flat_map(|k| (0..n).map(move |j| (k, j))) {
                    to[k * n + j] += grad[k] * value(3, j) * value(4, j).tanh();
                }
            }
            let mut of_product = vec![0.0; columns];
            let mut kept = vec![0.0; out];
            let x = &mut of_x[at * columns..(at + 1) * columns];
            for j in 0..n {
                let g = of_made[j];
                match layer.mode {
                    "rnn_tanh" => x[j] = g * (1.0 - output[at * out + j].powi(2)),
                    "rnn_relu" => x[j] = if output[at * out + j] > 0.0 { g } else { 0.0 },
                    "gru" => {
                        let [r, z, p, new] = [0, 1, 2, 3].map(|k| value(k, j));
                        let of_new = g * (1.0 - z) * (1.0 - new * new);
                        x[j] = of_new * p * r * (1.0 - r);
                        x[n + j] = g * (h[j] - new) * z * (1.0 - z);
                        x[2 * n + j] = of_new;
                        of_product[2 * n + j] = of_new * r;
                        kept[j] = g * z;
                    }
                    _ => {
                        let [i, f, c, o, state] = [0, 1, 2, 3, 4].map(|k| value(k, j));
                        let old = match before {
                            Some(at) => saved[at * layer.saved() + 4 * n + j],
                            None => initial_cell[nth * n + j],
                        };
                        let t = state.tanh();
                        let d = of_cell[nth * n + j] + g * o * (1.0 - t * t);
                        x[j] = d * c * i * (1.0 - i);
                        x[n + j] = d * old * f * (1.0 - f);
                        x[2 * n + j] = d * i * (1.0 - c * c);
                        x[3 * n + j] = g * t * o * (1.0 - o);
                        of_cell[nth * n + j] = d * f;
                    }
                }
            }
            let same = if layer.mode == "gru" { 2 * n } else { columns };
            of_product[..same].copy_from_slice(&x[..same]);
            for (g, grad) in of_product.iter().enumerate() {
                of_bias[g] += grad;
                (0..out).for_each(|k| of_weight[g * out + k] += grad * h[k]);
            }
            for ((to, a), b) in of_hidden[nth * out..].iter_mut().zip(layer.through(&of_product)).zip(kept) {
                *to = a + b;
            }
        }
    }
    let count = layer.sequences.len();
    let cell_sizes: &[usize] = if layer.mode == "lstm" { &[count, n] } else { &[0] };
    let projection_sizes: &[usize] = if of_projection.is_some() { &[out, n] } else { &[0] };
    Ok(vec![
        array(dtype, &[layer.rows, columns], of_x),
        array(dtype, &[count, out], of_hidden),
        array(dtype, cell_sizes, of_cell),
        array(dtype, &[columns, out], of_weight),
        array(dtype, &[columns], of_bias),
        array(dtype, projection_sizes, of_projection.unwrap_or_default()),
    ])
}

/// The ops of this family.
pub const ALL: Family = &[("rnn_layer", rnn_layer), ("rnn_layer_backward", rnn_layer_backward)];
