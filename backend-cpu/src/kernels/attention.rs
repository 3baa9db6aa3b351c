//! `scaled_dot_product_attention` without mask and dropout. A block of queries of one head is computed at a time, so that
//! its scores stay in L2.
//!
//! Other calls, and operands that are not dense, use the decomposition.

use super::bf16_panels;
use super::buffer::{Buffer, try_parallel_for};
use super::product::{Matrix, Multiply, Tile, multiply_one};
use super::softmax::{Shares, begin};
use keyway_cpu_loops::tiles::Native;
use keyway_cpu_loops::vectors::{Lanes as Elements, largest, widen};
use keyway_cpu_loops::{CallExt, zip_wide};
use keyway_sdk::author::{Call, Element, Error, Float, Lanes, Real, Widen};
use keyway_sdk::half::{bf16, f16};

/// Queries whose scores are computed together.
const QUERIES: usize = 128;
/// Multiplications that justify another thread.
const WORK: usize = 1 << 21;
/// The maximum number of rows and columns of a product that [`bf16_panels`] computes, and the minimum number of
/// multiplications that justify the packing.
const PANEL_SIDE: usize = 256;
const PANEL_LEAST: usize = 1 << 16;

/// Rows, columns and reduction dimension (k) of a product.
type Sizes = (usize, usize, usize);

/// An element type of attention, computed in its accumulation type.
trait Attend: Elements<Acc: Shares + Multiply> {
    /// `to = queries keys^T`; rows of both are dense.
    ///
    /// # Safety
    /// The elements must exist; the caller upholds this.
    unsafe fn scores(
        to: &mut [Self::Acc],
        queries: *const Self,
        keys: *const Self,
        sizes: Sizes,
    ) -> Result<(), Error> {
        let (rows, columns, inner) = sizes;
        // SAFETY: the caller guarantees the elements.
        unsafe {
            let (queries, keys) = (widened(queries, rows * inner)?, widened(keys, columns * inner)?);
            product(to, queries.at, keys.at, (1, inner), sizes)
        }
    }

    /// `to = weights values`; rows of both are dense.
    ///
    /// # Safety
    /// The elements must exist; the caller upholds this.
    unsafe fn weighted(
        to: &mut [Self::Acc],
        weights: &[Self::Acc],
        values: *const Self,
        sizes: Sizes,
        _: &mut Buffers,
    ) -> Result<(), Error> {
        let (_, columns, inner) = sizes;
        // SAFETY: the caller guarantees the elements.
        unsafe {
            let values = widened(values, inner * columns)?;
            product(to, weights.as_ptr(), values.at, (columns, 1), sizes)
        }
    }
}

impl Attend for f32 {}
impl Attend for f64 {}
impl Attend for f16 {}

impl Attend for bf16 {
    unsafe fn scores(
        to: &mut [f32],
        queries: *const bf16,
        keys: *const bf16,
        sizes: Sizes,
    ) -> Result<(), Error> {
        let inner = sizes.2;
        let keys_there = Matrix { data: keys, row: 1, column: inner };
        // SAFETY: the caller guarantees the elements.
        unsafe {
            if let Some(done) = by_panels(to, queries, keys_there, sizes) {
                return done;
            }
            let (queries, keys) = (widened(queries, sizes.0 * inner)?, widened(keys, sizes.1 * inner)?);
            product(to, queries.at, keys.at, (1, inner), sizes)
        }
    }

    /// Computes with weights split into two bf16 addends, so that no significant bit of f32 is lost.
    unsafe fn weighted(
        to: &mut [f32],
        weights: &[f32],
        values: *const bf16,
        sizes: Sizes,
        buffers: &mut Buffers,
    ) -> Result<(), Error> {
        let (rows, columns, inner) = sizes;
        let there = Matrix { data: values, row: columns, column: 1 };
        let (part, rest) = (&mut buffers.part[..rows * inner], &mut buffers.rest[..rows * inner]);
        let added = &mut buffers.added[..rows * columns];
        split(weights, part, rest);
        // SAFETY: the caller guarantees the elements.
        unsafe {
            if let Some(done) = by_panels(to, part.as_ptr(), there, sizes)
                && let Some(other) = by_panels(added, rest.as_ptr(), there, sizes)
            {
                to.iter_mut().zip(added).for_each(|(to, added)| *to += *added);
                return done.and(other);
            }
            let values = widened(values, inner * columns)?;
            product(to, weights.as_ptr(), values.at, (columns, 1), sizes)
        }
    }
}

/// Splits f32 values into the bf16 nearest to each and the bf16 of the remainder.
fn split(numbers: &[f32], part: &mut [bf16], rest: &mut [bf16]) {
    const CHUNK: usize = 32;
    let ((x, x_end), (part, part_end)) = (numbers.as_chunks::<CHUNK>(), part.as_chunks_mut::<CHUNK>());
    let (rest, rest_end) = rest.as_chunks_mut::<CHUNK>();
    for ((x, part), rest) in x.iter().zip(part).zip(rest) {
        *part = bf16::narrow_chunk(x);
        let mut left = [0f32; CHUNK];
        for k in 0..CHUNK {
            left[k] = x[k] - part[k].to_acc();
        }
        *rest = bf16::narrow_chunk(&left);
    }
    for ((x, part), rest) in x_end.iter().zip(part_end).zip(rest_end) {
        *part = bf16::from_acc(*x);
        *rest = bf16::from_acc(x - part.to_acc());
    }
}

/// Scratch memory for a block of weights in two parts, and for the addend of the second part.
struct Buffers {
    part: Buffer<bf16>,
    rest: Buffer<bf16>,
    added: Buffer<f32>,
}

impl Buffers {
    /// Allocates memory for these numbers of weights and sums.
    fn new(weights: usize, sums: usize) -> Result<Self, Error> {
        Ok(Buffers {
            part: Buffer::zeroed(weights)?,
            rest: Buffer::zeroed(weights)?,
            added: Buffer::zeroed(sums)?,
        })
    }
}

/// Elements in the accumulation type: borrowed, or a converted copy.
struct Widened<A> {
    at: *const A,
    _copy: Buffer<A>,
}

/// # Safety
/// There must be `n` elements, which outlive the result.
unsafe fn widened<T: Elements>(from: *const T, n: usize) -> Result<Widened<T::Acc>, Error> {
    if T::dtype() == T::Acc::dtype() {
        return Ok(Widened { at: from.cast(), _copy: Buffer::zeroed(0)? });
    }
    let mut copy = Buffer::zeroed(n)?;
    // SAFETY: the caller guarantees the elements, and the copy has the same number.
    unsafe { widen(copy.as_mut_ptr(), from, n) };
    Ok(Widened { at: copy.as_ptr(), _copy: copy })
}

/// `to = a b`; rows of `a` and `to` are dense, `b` has these strides.
///
/// # Safety
/// The elements must exist.
unsafe fn product<A: Real + Multiply>(
    to: &mut [A],
    a: *const A,
    b: *const A,
    (row, column): (usize, usize),
    (rows, columns, inner): Sizes,
) -> Result<(), Error> {
    let whole = Tile {
        rows,
        columns,
        inner,
        a: Matrix { data: a, row: inner, column: 1 },
        b: Matrix { data: b, row, column },
        out: Matrix { data: to.as_mut_ptr(), row: columns, column: 1 },
        input: None,
        alpha: A::ONE,
    };
    // SAFETY: the caller guarantees the elements; `to` has an element for each result.
    unsafe { multiply_one(&whole) }
}

/// `to = a b` with dense rows of `a` and `to`, if [`bf16_panels`] supports products of this size.
///
/// # Safety
/// The elements must exist.
unsafe fn by_panels(
    to: &mut [f32],
    a: *const bf16,
    b: Matrix<*const bf16>,
    (rows, columns, inner): Sizes,
) -> Option<Result<(), Error>> {
    let worth = rows <= PANEL_SIDE && rows.saturating_mul(columns).saturating_mul(inner) >= PANEL_LEAST;
    let unit = Native::find().filter(|unit| worth && unit.pays(rows, columns, inner))?;
    for first in (0..columns).step_by(PANEL_SIDE) {
        let part = Tile {
            rows,
            columns: PANEL_SIDE.min(columns - first),
            inner,
            a: Matrix { data: a, row: inner, column: 1 },
            b: b.at(0, first),
            // The sums are the result; there is no output in bf16.
            out: Matrix { data: std::ptr::null_mut(), row: 0, column: 0 },
            input: None,
            alpha: bf16::ONE,
        };
        // SAFETY: the caller guarantees the elements; `to` has an element for each sum.
        if let Err(error) = unsafe { bf16_panels::sums(unit, &part, to[first..].as_mut_ptr(), columns) }? {
            return Some(Err(error));
        }
    }
    Some(Ok(()))
}

fn attention<T: Attend>(call: &Call) -> Result<(), Error> {
    let unsupported = |what: &str| Error::Unsupported { what: what.to_string() };
    if !call.is_none(3)? || call.float(4)? > 0.0 || call.bool(7)? {
        return Err(unsupported("attention with a mask, dropout or grouped heads"));
    }
    let (query, key, value) = (call.view::<T>(0)?, call.view::<T>(1)?, call.view::<T>(2)?);
    let last = |sizes: &[i64], back: usize| sizes[sizes.len() - back] as usize;
    let lead = |sizes: &'_ [i64]| sizes[..sizes.len() - 2].to_vec();
    let alike = lead(query.sizes()) == lead(key.sizes()) && lead(query.sizes()) == lead(value.sizes());
    let (Some(q), Some(k), Some(v), true) = (query.as_slice(), key.as_slice(), value.as_slice(), alike)
    else {
        return Err(unsupported("attention of operands that are strided or broadcast"));
    };
    let (queries, e) = (last(query.sizes(), 2), last(query.sizes(), 1));
    let (keys, ev) = (last(value.sizes(), 2), last(value.sizes(), 1));
    if q.is_empty() || k.is_empty() || v.is_empty() {
        return Err(unsupported("attention of nothing"));
    }
    let causal = call.bool(5)?;
    let scale = if call.is_none(6)? { 1.0 / (e as f64).sqrt() } else { call.float(6)? };
    // A negative scale reverses the order of the scores.
    let (negated, scale) = (scale < 0.0, T::Acc::from_f64(scale.abs()));
    let mut out = call.contiguous_out::<T>(0)?;
    // SAFETY: the address is used within the output, which outlives the loop; each block of queries has its own rows.
    let to = unsafe { Lanes::new(out.as_mut_ptr()) };
    let blocks = queries.div_ceil(QUERIES);
    let work = QUERIES.min(queries).saturating_mul(keys).saturating_mul(e + ev);
    try_parallel_for(q.len() / (queries * e) * blocks, WORK.div_ceil(work), |units| {
        let most = QUERIES.min(queries);
        let mut scores = Buffer::<T::Acc>::zeroed(most * keys)?;
        let mut made = Buffer::<T::Acc>::zeroed(most * ev)?;
        let mut sums = [T::Acc::ONE; QUERIES];
        let parts = if T::dtype() == bf16::dtype() { (most * keys, most * ev) } else { (0, 0) };
        let mut buffers = Buffers::new(parts.0, parts.1)?;
        for unit in units {
            let (head, first) = (unit / blocks, unit % blocks * QUERIES);
            let rows = QUERIES.min(queries - first);
            // With a causal mask no query of this block sees later keys.
            let near = if causal { keys.min(first + rows) } else { keys };
            let (scores, made) = (&mut scores[..rows * near], &mut made[..rows * ev]);
            let q = &q[(head * queries + first) * e..][..rows * e];
            let (k, v) = (&k[head * keys * e..][..near * e], &v[head * keys * ev..][..near * ev]);
            // SAFETY: the slices have the elements of these sizes.
            unsafe { T::scores(scores, q.as_ptr(), k.as_ptr(), (rows, near, e)) }?;
            for ((r, scores), sum) in scores.chunks_exact_mut(near).enumerate().zip(&mut sums) {
                let seen = if causal { near.min(first + r + 1) } else { near };
                let (seen, later) = scores.split_at_mut(seen);
                if negated {
                    seen.iter_mut().for_each(|x| *x = -*x);
                }
                *sum = begin::<T::Acc, false>(seen, largest(seen), scale);
                later.fill(T::Acc::ZERO);
            }
            // SAFETY: as above; each block has its own rows of the output.
            unsafe {
                T::weighted(made, scores, v.as_ptr(), (rows, ev, near), &mut buffers)?;
                for ((r, made), sum) in made.chunks_exact(ev).enumerate().zip(&sums) {
                    let (to, share) =
                        (to.slice_mut((head * queries + first + r) * ev, ev), T::Acc::ONE / *sum);
                    zip_wide((made,), to, |(x,)| x * share);
                }
            }
        }
        Ok(())
    })
}

kernel!("scaled_dot_product_attention", "TTTOfbfb>T", attention, [f32, f64, f16, bf16]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares scores and weighted sums with sums in f64, for one block of the result and for several.
    fn check<T: Attend>(tolerance: f64) {
        for (rows, columns, inner) in [(3, 5, 2), (64, 64, 64), (70, 300, 33), (128, 40, 300)] {
            let number = |i: usize| T::from_f64((i * 7919 % 1009) as f64 / 1009.0 - 0.5);
            let a: Vec<T> = (0..rows * inner).map(number).collect();
            let b: Vec<T> = (0..columns * inner).map(|i| number(i + 3)).collect();
            let mut scores = vec![T::Acc::ZERO; rows * columns];
            let mut weighted = scores.clone();
            let weight = |i: usize| T::Acc::from_f64((i * 613 % 997) as f64 / 997.0);
            let weights: Vec<T::Acc> = (0..rows * inner).map(weight).collect();
            // SAFETY: the vectors have the elements of these sizes.
            unsafe {
                T::scores(&mut scores, a.as_ptr(), b.as_ptr(), (rows, columns, inner)).expect("memory");
                let (sizes, mut buffers) =
                    ((rows, columns, inner), Buffers::new(rows * inner, rows * columns).expect("memory"));
                T::weighted(&mut weighted, &weights, b.as_ptr(), sizes, &mut buffers).expect("memory");
            }
            for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                let sum = |term: &dyn Fn(usize) -> f64| (0..inner).map(term).sum::<f64>();
                let score = sum(&|k| a[r * inner + k].to_f64() * b[c * inner + k].to_f64());
                let value = sum(&|k| weights[r * inner + k].to_f64() * b[k * columns + c].to_f64());
                let at = r * columns + c;
                for (got, expected) in [(scores[at], score), (weighted[at], value)] {
                    let off = (got.to_f64() - expected).abs();
                    assert!(off < tolerance * inner as f64, "{} {rows} {columns} {inner}: {off:e}", T::NAME);
                }
            }
        }
    }

    #[test]
    fn products_keep_the_digits_of_their_sums() {
        check::<f64>(1e-15);
        check::<f32>(1e-6);
        check::<f16>(1e-6);
        check::<bf16>(1e-5);
    }
}
