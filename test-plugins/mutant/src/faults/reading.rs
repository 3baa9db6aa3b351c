//! Arguments whose elements are read from wrong offsets.

use super::Fault;
use crate::raw::{Elements, Staged};
use crate::site::Site;
use keyway_sdk::Error;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "stride_ignored",
        "reads strided arguments as if they were row-major",
        &["add", "exp"],
        |site| misread(site, is_strided, |_, nth| nth as i64),
    ),
    Fault::new("stride_off_by_one", "the innermost stride is one too long", &["mul", "relu"], |site| {
        misread(site, is_strided, |t, nth| {
            let index = t.index(nth);
            let inner = (0..index.len()).rev().find(|&d| t.sizes()[d] > 1);
            t.offset(&index) + inner.map_or(0, |d| index[d])
        })
    }),
    Fault::new(
        "strides_swapped",
        "takes a strided matrix for its transpose's memory",
        &["sum", "clone"],
        |site| {
            misread(site, is_strided, |t, nth| {
                let mut index = t.index(nth);
                index.reverse();
                t.offset(&index)
            })
        },
    ),
    Fault::new(
        "offset_ignored",
        "reads a strided argument from before its offset",
        &["eq", "round"],
        |site| {
            // These ops create no views themselves: strided, not expanded tensors were allocated by the suite, between
            // guard bands longer than this.
            misplaced(site, |t| is_strided(t) && !t.is_expanded(), |t, nth| t.offset(&t.index(nth)) - 5)
        },
    ),
    Fault::new("broadcast_wrong", "steps through an argument that should repeat", &["add", "mul"], |site| {
        misread(
            site,
            |t| t.is_expanded(),
            |t, nth| {
                let index = t.index(nth);
                let repeats = |d: &usize| t.strides()[*d] == 0;
                let steps: i64 = (0..index.len()).filter(repeats).map(|d| index[d]).sum();
                (t.offset(&index) + steps) % t.extent()
            },
        )
    }),
    Fault::new(
        "aligned_loads",
        "reads from the aligned address before its own",
        &["exp", "square", "sinh", "expm1"],
        |site| {
            const ALIGN: usize = 16;
            let input = site.input(0)?;
            let back = input.address() % ALIGN / input.width();
            if input.len() < 2 || !input.is_row_major() || back == 0 {
                return site.run();
            }
            misread(site, |_| true, |_, nth| nth as i64 - (nth > 0) as i64)
        },
    )
    .dtypes(&["f32"]),
    Fault::new("operand_transposed", "takes a square right-hand matrix for its transpose", &["mm"], |site| {
        let right = site.input(1)?;
        let square = right.sizes().len() == 2 && right.sizes()[0] == right.sizes()[1];
        if !square {
            return site.run();
        }
        let transposed = Staged::gathered(&right, |nth| {
            let index = right.index(nth);
            right.offset(&[index[1], index[0]])
        });
        site.run_staged(&[(1, transposed)])
    }),
    Fault::new("gather_off_by_one", "every index is one too large, the last wraps", &["gather"], |site| {
        let rows = along(site)?;
        staged_index(site, |index| if index < 0 { index } else { (index + 1) % rows.max(1) })
    }),
    Fault::new("index_unchecked", "an index out of range is brought into it", &["gather"], |site| {
        let rows = along(site)?;
        staged_index(site, |index| index.clamp(-rows, (rows - 1).max(0)))
    }),
];

fn is_strided(tensor: &Elements<'_>) -> bool {
    !tensor.is_row_major()
}

/// Runs the kernel on arguments whose elements are read at the offsets that `place` returns, relative to the first element.
fn misplaced(
    site: &Site<'_>,
    wanted: impl Fn(&Elements<'_>) -> bool,
    place: impl Fn(&Elements<'_>, usize) -> i64,
) -> Result<(), Error> {
    let wrong = site.inputs().into_iter().filter(|(_, t)| t.len() > 1 && wanted(t));
    let staged: Vec<_> = wrong.map(|(i, t)| (i, Staged::gathered(&t, |nth| place(&t, nth)))).collect();
    site.run_staged(&staged)
}

/// As [`misplaced`], clamped to the range from the first element to the last.
fn misread(
    site: &Site<'_>,
    wanted: impl Fn(&Elements<'_>) -> bool,
    place: impl Fn(&Elements<'_>, usize) -> i64,
) -> Result<(), Error> {
    misplaced(site, wanted, |t, nth| place(t, nth).clamp(0, t.extent() - 1))
}

/// The size of the dimension along which `gather` indexes.
fn along(site: &Site<'_>) -> Result<i64, Error> {
    let (tensor, dim) = (site.input(0)?, site.call.int(1)?);
    let ndim = tensor.sizes().len() as i64;
    let dim = if dim < 0 { dim + ndim } else { dim };
    Ok(tensor.sizes().get(dim.max(0) as usize).copied().unwrap_or(1))
}

fn staged_index(site: &Site<'_>, change: impl Fn(i64) -> i64) -> Result<(), Error> {
    let staged = Staged::copy(&site.input(2)?);
    let index = staged.elements();
    (0..index.len()).for_each(|nth| index.set_int(nth, change(index.int(nth))));
    site.run_staged(&[(2, staged)])
}
