//! `scatter_reduce` and `index_reduce` for `amax` and `amin` with `include_self`; other calls use the decomposition, which
//! sorts the sources by index.

use super::accumulate::Sum;
use super::cells::copy_all;
use super::maximum::larger;
use super::minimum::smaller;
use super::scatter::{Operands, Scatter, scatter_lines};
use super::scatter_panels::{by_panels, fits};
use keyway_sdk::author::{Call, Error, Plain};
use keyway_sdk::half::{bf16, f16};

fn reduced<T: Sum<Acc: PartialOrd> + Plain + PartialOrd>(call: &Call, slices: bool) -> Result<(), Error> {
    let reduce = call.str(4)?;
    if !call.bool(5)? || !matches!(reduce, "amax" | "amin") {
        return Err(Error::Unsupported { what: "other ways than extremes with `include_self`".to_string() });
    }
    let mut o = Operands::<T>::of(call, slices)?;
    o.source = o.source.apart_from(&o.out)?;
    if o.out.numel() == 0 {
        return Ok(());
    }
    if fits::<T, T::Acc>(&o) {
        return match reduce {
            "amax" => by_panels(o, larger::<T::Acc>),
            _ => by_panels(o, smaller::<T::Acc>),
        };
    }
    copy_all(&o.out, &o.target)?;
    let (tasks, lines) = o.loops(&o.out.strides);
    let operands = Scatter {
        out: o.out.lanes,
        index: o.index.lanes,
        source: o.source.lanes,
        stride: o.out.strides[o.dim],
    };
    // SAFETY: the op's shape rule matches index, source and target except in `dim`, where every index was checked; tasks differ
    // in another dimension; source and index do not overlap the output.
    unsafe {
        match reduce {
            "amax" => scatter_lines(&tasks, &lines, &operands, larger::<T>),
            _ => scatter_lines(&tasks, &lines, &operands, smaller::<T>),
        }
    }
}

fn scatter_reduce<T: Sum<Acc: PartialOrd> + Plain + PartialOrd>(call: &Call) -> Result<(), Error> {
    reduced::<T>(call, false)
}

fn index_reduce<T: Sum<Acc: PartialOrd> + Plain + PartialOrd>(call: &Call) -> Result<(), Error> {
    reduced::<T>(call, true)
}

kernel!(
    "scatter_reduce",
    "TiTTSb>T",
    scatter_reduce,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
);
kernel!(
    "index_reduce",
    "TiTTSb>T",
    index_reduce,
    [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
);
