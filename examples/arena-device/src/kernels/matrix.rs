//! `mm`, the base of every matrix product.

use super::kernel;
use crate::arena::{self, Cell};
use crate::operand::Operand;
use keyway_sdk::author::{Call, Error, Real};

fn mm<T: Real + Cell>(call: &Call<'_>) -> Result<(), Error> {
    let mut memory = arena::lock();
    let out = Operand::<T>::output(&memory, call)?;
    let (a, b) = (Operand::<T>::argument(&memory, call, 0)?, Operand::<T>::argument(&memory, call, 1)?);
    let (&[rows, inner], &[_, columns]) = (a.sizes, b.sizes) else {
        return Err(Error::Unsupported { what: "a product of other than two matrices".into() });
    };
    let at = |operand: &Operand<'_, T>, row: i64, column: i64| {
        (row * operand.strides[0] + column * operand.strides[1]) as usize
    };
    for i in 0..rows {
        for j in 0..columns {
            let term = |k| a.get(&memory, at(&a, i, k)) * b.get(&memory, at(&b, k, j));
            let total = (0..inner).fold(T::ZERO, |sum, k| sum + term(k));
            out.set(&mut memory, at(&out, i, j), total);
        }
    }
    Ok(())
}

kernel!("mm", "TT>T", [f32 => mm::<f32>, f64 => mm::<f64>]);
