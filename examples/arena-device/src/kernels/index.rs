//! `gather` and `scatter_add`, the base of selections, embeddings and their gradients.

use super::kernel;
use crate::arena::{self, Arena, Cell};
use crate::operand::Operand;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error, Real};
use std::collections::HashMap;

/// The dimension in argument 1, of a tensor with `ndim` dimensions.
fn dim(call: &Call<'_>, ndim: usize) -> Result<usize, Error> {
    let dim = call.int(1)?;
    Ok((if dim < 0 { dim + ndim as i64 } else { dim }) as usize)
}

/// Checks all indices, before anything is written: each must be below `size`.
fn check(memory: &Arena, index: &Operand<'_, i64>, size: i64) -> Result<(), Error> {
    let all = Strided::new(index.sizes, [index.strides])?;
    let wrong = all.offsets().map(|[i]| index.get(memory, i)).find(|i| !(0..size).contains(i));
    match wrong {
        None => Ok(()),
        Some(wrong) => Err(Error::InvalidArgument {
            argument: "index",
            expected: format!("indices in 0..{size}"),
            got: format!("index {wrong}"),
        }),
    }
}

/// The strides of a tensor with that of `dim`, which the index replaces, set to 0, and that stride. The result has as many
/// dimensions as the index: a tensor without dimensions has an index of one dimension.
fn without(strides: &[i64], dim: usize, index: &Operand<'_, i64>) -> (Vec<i64>, usize) {
    let mut others = strides.to_vec();
    let own = others.get_mut(dim).map_or(0, std::mem::take);
    others.resize(index.sizes.len(), 0);
    (others, own as usize)
}

/// `out[i][j] = self[index[i][j]][j]`, for dimension 0 of a matrix.
fn gather<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, source) = (Operand::<T>::output(&memory, call)?, Operand::<T>::argument(&memory, call, 0)?);
    let index = Operand::<i64>::argument(&memory, call, 2)?;
    let dim = dim(call, source.sizes.len())?;
    check(&memory, &index, source.sizes.get(dim).copied().unwrap_or(1))?;
    let (others, step) = without(source.strides, dim, &index);
    for [o, i, from] in Strided::new(index.sizes, [out.strides, index.strides, &others])?.offsets() {
        let at = from + index.get(&memory, i) as usize * step;
        let value = source.get(&memory, at);
        out.set(&mut memory, o, value);
    }
    Ok(())
}

/// `self` with `src[i][j]` added at `[index[i][j]][j]`, for dimension 0 of a matrix. Sums are accumulated in f64: many addends may have
/// one index, and 2^24 ones and one more are 2^24 in f32.
fn scatter_add<T: Real + Cell>(call: &Call<'_>) -> Result<(), Error> {
    let mut memory = arena::lock();
    let (out, own) = (Operand::<T>::output(&memory, call)?, Operand::<T>::argument(&memory, call, 0)?);
    let index = Operand::<i64>::argument(&memory, call, 2)?;
    let source = Operand::<T>::argument(&memory, call, 3)?;
    let dim = dim(call, out.sizes.len())?;
    check(&memory, &index, out.sizes.get(dim).copied().unwrap_or(1))?;
    for [o, i] in Strided::new(out.sizes, [out.strides, own.strides])?.offsets() {
        let value = own.get(&memory, i);
        out.set(&mut memory, o, value);
    }
    let (others, step) = without(out.strides, dim, &index);
    let mut sums = HashMap::<usize, f64>::new();
    for [i, from, to] in Strided::new(index.sizes, [index.strides, source.strides, &others])?.offsets() {
        let at = to + index.get(&memory, i) as usize * step;
        let sum = sums.entry(at).or_insert_with(|| out.get(&memory, at).to_f64());
        *sum += source.get(&memory, from).to_f64();
    }
    for (at, sum) in sums {
        out.set(&mut memory, at, T::from_f64(sum));
    }
    Ok(())
}

kernel!("gather", "TiT>T", [
    f32 => gather::<f32>, f64 => gather::<f64>, i64 => gather::<i64>, bool => gather::<bool>,
]);
kernel!("scatter_add", "TiTT>T", [f32 => scatter_add::<f32>, f64 => scatter_add::<f64>]);
