//! Ops that write elements at given indices.

use super::{checked_all, pointed, with, with_dim};
use crate::array::{Array, Indices, Number, flat};
use crate::oracle::number::{plus, times};
use crate::oracle::pointwise::{broadcast, leaves_range};
use crate::oracle::{Family, Inputs, Unknown};

/// Combines the old and the new value.
type Join = fn(Number, Number) -> Number;

fn replace(_: Number, new: Number) -> Number {
    new
}

/// Writes each element of `src`, or its only one, to its index along `dim`, in order.
fn scattered(inputs: &Inputs, join: Join) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let (mut own, index) = (with_dim(a), with_dim(inputs.array(2)?));
    let src = inputs.operand(3)?.cast(a.dtype);
    let fits = |larger: &Array, but: Option<usize>| {
        larger.ndim() == index.ndim()
            && (0..index.ndim()).all(|d| Some(d) == but || index.sizes[d] <= larger.sizes[d])
    };
    if !fits(&own, Some(dim)) || (src.ndim() > 0 && !fits(&src, None)) {
        return Err(Unknown(format!("an index of {:?} into {:?}", index.sizes, a.sizes)));
    }
    for (i, position) in Indices::new(&index.sizes).zip(checked_all(&index, own.sizes[dim])?) {
        let at = flat(&own.sizes, &with(&i, dim, position));
        own.values[at] = join(own.values[at], if src.ndim() > 0 { src.at(&i) } else { src.values[0] });
    }
    Ok(vec![own.reshaped(a.sizes.clone())])
}

fn scatter(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    scattered(inputs, replace)
}

fn scatter_add(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    scattered(inputs, plus)
}

/// Writes each slice of argument 3, `source`, or its single element, to its index along `dim`, in order.
fn slices(inputs: &Inputs, source: &Array, join: Join) -> Result<Vec<Array>, Unknown> {
    let a = inputs.array(0)?;
    let dim = inputs.dim(1, a.ndim())?;
    let mut own = with_dim(a);
    let found = checked_all(inputs.array(2)?, own.sizes[dim])?;
    let mut sizes = own.sizes.clone();
    sizes[dim] = found.len();
    if source.ndim() > 0 && source.sizes != sizes {
        return Err(Unknown(format!("slices of {:?} for {sizes:?}", source.sizes)));
    }
    for i in Indices::new(&sizes) {
        let at = flat(&own.sizes, &with(&i, dim, found[i[dim]]));
        let value = if source.ndim() > 0 { source.at(&i) } else { source.values[0] };
        own.values[at] = join(own.values[at], value);
    }
    Ok(vec![own.reshaped(a.sizes.clone())])
}

fn index_copy(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    slices(inputs, &inputs.operand(3)?.cast(inputs.array(0)?.dtype), replace)
}

fn index_add(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (dtype, alpha) = (inputs.array(0)?.dtype, inputs.number(4)?);
    let factor = if dtype.is_float() { alpha } else { alpha.cast(dtype) };
    let source = inputs.array(3)?.cast(dtype).map(dtype, |v| times(v, factor));
    slices(inputs, &source, plus)
}

fn index_put(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let mut made = inputs.array(0)?.clone();
    let values = inputs.operand(3)?.cast(made.dtype);
    let join: Join = if inputs.bool(4)? { plus } else { replace };
    let (shape, found) = pointed(&made.sizes, inputs.arrays(1)?, inputs.ints(2)?)?;
    if broadcast(&[&shape, &values.sizes])? != shape {
        return Err(Unknown(format!("values of {:?} for {shape:?}", values.sizes)));
    }
    for (i, position) in Indices::new(&shape).zip(found) {
        let at = flat(&made.sizes, &position);
        made.values[at] = join(made.values[at], values.broadcast_at(&i));
    }
    Ok(vec![made])
}

fn masked_fill(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, mask) = (inputs.array(0)?, inputs.array(1)?);
    let value = inputs.operand(2)?.cast(a.dtype);
    Ok(vec![Array::from_fn(a.dtype, broadcast(&[&a.sizes, &mask.sizes])?, |i| {
        if mask.broadcast_at(i).truth() { value.values[0] } else { a.broadcast_at(i) }
    })])
}

/// masked_scatter: writes the first elements of the source where the mask is true, in row-major order.
fn masked_scatter(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let (a, mask, source) =
        (inputs.array(0)?, inputs.array(1)?, inputs.array(2)?.cast(inputs.array(0)?.dtype));
    let (mut next, mut missing) = (source.values.iter(), false);
    let made = Array::from_fn(a.dtype, broadcast(&[&a.sizes, &mask.sizes])?, |i| {
        if !mask.broadcast_at(i).truth() {
            return a.broadcast_at(i);
        }
        missing |= next.len() == 0;
        next.next().copied().unwrap_or(Number::Any)
    });
    if missing { Err(Unknown("the source has too few elements".into())) } else { Ok(vec![made]) }
}

/// A step of Adam for the rows that have an index, each by the sum of its gradients.
fn adam_rows(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let tables = [inputs.array(0)?, inputs.array(1)?, inputs.array(2)?];
    let dtype = tables[0].dtype;
    let rows = tables[0].sizes.first().copied().unwrap_or(0);
    let width: usize = tables[0].sizes.iter().skip(1).product();
    let [p, m, v] = tables.map(|table| table.cast(dtype).floats());
    let given = inputs.array(4)?.cast(dtype).floats();
    let [beta1, beta2, eps] = [inputs.float(5)?, inputs.float(6)?, inputs.float(7)?];
    let [rate, decay, shrink] = [inputs.float(8)?, inputs.float(9)?, inputs.float(10)?];
    let found = checked_all(inputs.array(3)?, rows)?;
    let mut made = tables.map(|table| table.cast(dtype));
    for (&row, column) in found.iter().flat_map(|row| (0..width).map(move |column| (row, column))) {
        let at = row * width + column;
        let of_row = (0..found.len()).filter(|j| found[*j] == row).map(|j| given[j * width + column]);
        let mut from: Vec<f64> = of_row.collect();
        let g = from.iter().sum::<f64>() + if decay == 0.0 { 0.0 } else { decay * p[at] };
        let mean = beta1 * m[at] + (1.0 - beta1) * g;
        let square = beta2 * v[at] + (1.0 - beta2) * g * g;
        let moved = rate * mean / (square.sqrt() + eps);
        from.extend([p[at], m[at], v[at]]);
        let open = [g, g * g, mean, square, moved].iter().any(|&step| leaves_range(dtype, step, &from));
        for (table, result) in made.iter_mut().zip([shrink * p[at] - moved, mean, square]) {
            table.values[at] = if open { Number::Any } else { Number::Float(result) };
        }
    }
    Ok(made.into())
}

/// The family's part.
pub const ALL: Family = &[
    ("adam_rows", adam_rows),
    ("index_add", index_add),
    ("index_copy", index_copy),
    ("index_put", index_put),
    ("masked_fill", masked_fill),
    ("masked_scatter", masked_scatter),
    ("scatter", scatter),
    ("scatter_add", scatter_add),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Value;
    use keyway::DType;

    fn whole(sizes: &[usize], values: &[i128]) -> Value {
        Value::Array(Array::new(DType::I64, sizes, values.iter().map(|&v| Number::Int(v)).collect()))
    }

    fn ints(made: Result<Vec<Array>, Unknown>) -> Vec<i128> {
        made.unwrap()[0].ints()
    }

    #[test]
    fn the_last_write_wins_and_sums_add_up() {
        let args = |src| Inputs(vec![whole(&[3], &[1, 2, 3]), Value::Int(0), whole(&[2], &[2, 2]), src]);
        let src = || whole(&[2], &[10, 20]);
        assert_eq!(ints(scatter(&args(src()))), [1, 2, 20]);
        assert_eq!(ints(scatter_add(&args(src()))), [1, 2, 33]);
        assert_eq!(ints(index_copy(&args(src()))), [1, 2, 20]);
        assert_eq!(ints(scatter(&args(Value::Int(9)))), [1, 2, 9]);
        let mut scaled = args(src());
        scaled.0.push(Value::Int(-1));
        assert_eq!(ints(index_add(&scaled)), [1, 2, -27]);
    }

    #[test]
    fn values_are_put_where_indices_point() {
        let Value::Array(at) = whole(&[3], &[0, 0, -1]) else { return };
        let call = |add| {
            let given = [whole(&[3], &[1, 2, 3]), Value::Arrays(vec![at.clone()]), Value::Ints(vec![0])];
            Inputs(given.into_iter().chain([Value::Int(10), Value::Bool(add)]).collect())
        };
        assert_eq!(ints(index_put(&call(true))), [21, 2, 13]);
        assert_eq!(ints(index_put(&call(false))), [10, 2, 10]);
    }
}
