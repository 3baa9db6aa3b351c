//! `scatter_add` and `index_add`

use super::accumulate::{Sum, accumulate};
use super::number::Number;
use super::scatter::{Operands, Scatter, scatter_lines};
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

/// Adds `alpha` times the source.
fn add<T: Sum>(call: &Call, slices: bool, alpha: T::Acc) -> Result<(), Error> {
    let mut o = Operands::<T>::of(call, slices)?;
    // Wide sums have memory of their own, so a source that lies where the output does stays as it is.
    if !T::WIDE {
        o.source = o.source.cast::<T::Cell>().apart_from(&o.out)?.cast();
    }
    accumulate(&o.out, &o.target, |sums, strides| {
        let (tasks, lines) = o.loops(strides);
        let operands =
            Scatter { out: sums, index: o.index.lanes, source: o.source.lanes, stride: strides[o.dim] };
        // SAFETY: the op's rule makes index and source fit each other and the target but in `dim`, where
        // every index was checked; tasks differ in another dimension; `sums` is neither of the others.
        unsafe {
            scatter_lines(&tasks, &lines, &operands, |sum: T::Acc, x: T| sum.plus(alpha.times(x.widen())))
        }
    })
}

fn scatter_add<T: Sum>(call: &Call) -> Result<(), Error> {
    add::<T>(call, false, T::Acc::from_i64(1))
}

fn index_add<T: Sum>(call: &Call) -> Result<(), Error> {
    add::<T>(call, true, call.scalar(4)?)
}

kernel!(
    "scatter_add",
    "TiTT>T",
    scatter_add,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]
);
kernel!("index_add", "TiTTs>T", index_add, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
