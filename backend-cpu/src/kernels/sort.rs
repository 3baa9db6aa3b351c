//! `sort` and `topk`

use super::cells::Cells;
use super::nest::{Dim, Nest};
use super::order::{Key, Ranking};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};
use std::sync::OnceLock;

/// Writes the first `k` of each line along `dim`, with their places.
fn ranked<T: Key>(call: &Call, dim: i64, k: usize, descending: bool) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?.with_dim();
    let (values, places) =
        (Cells::<T>::output(call, 0)?.with_dim(), Cells::<i64>::output(call, 1)?.with_dim());
    let dim = if dim < 0 { dim + from.sizes.len() as i64 } else { dim } as usize;
    let n = from.sizes[dim];
    let others = (0..from.sizes.len()).filter(|&d| d != dim);
    let lines: Vec<Dim<3>> =
        others.map(|d| (from.sizes[d], [values.strides[d], places.strides[d], from.strides[d]])).collect();
    let (vd, pd, fd) = (values.strides[dim], places.strides[dim], from.strides[dim]);
    let work = n * (n.max(2).ilog2() as usize);
    let failed = OnceLock::new();
    Nest::sorted(lines).for_each_row(work, |[v, p, f], len, [vs, ps, fs]| {
        let mut ranking = match Ranking::new::<T>(n) {
            Ok(ranking) => ranking,
            Err(error) => {
                failed.get_or_init(|| error);
                return;
            }
        };
        for l in 0..len as isize {
            // SAFETY: the loops are those of the source and of the results, which differ in `dim` alone;
            // there `i` is below the source's size and `r` below the results'. Each line is one piece's.
            unsafe {
                let line = from.lanes.as_ptr().cast_const().offset(f + l * fs);
                let at = |i: usize| line.offset(i as isize * fd);
                let (values, places) =
                    (values.lanes.as_ptr().offset(v + l * vs), places.lanes.as_ptr().offset(p + l * ps));
                ranking.rank(k, descending, |i| T::load(at(i))).each(|r, i| {
                    values.offset(r as isize * vd).write(T::load(at(i)));
                    places.offset(r as isize * pd).write(i as i64);
                });
            }
        }
    })?;
    failed.into_inner().map_or(Ok(()), Err)
}

fn sort<T: Key>(call: &Call) -> Result<(), Error> {
    let from = call.tensor(0)?;
    let dim = call.int(1)?;
    let d = if dim < 0 { dim + from.ndim() as i64 } else { dim };
    let n = from.sizes().get(d as usize).map_or(1, |&n| n as usize);
    ranked::<T>(call, dim, n, call.bool(2)?)
}

fn topk<T: Key>(call: &Call) -> Result<(), Error> {
    ranked::<T>(call, call.int(2)?, call.int(1)? as usize, call.bool(3)?)
}

kernel!("sort", "Tibb>TT", sort, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("topk", "Tiibb>TT", topk, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
