//! `fft_c2c`: complex lines of `rustfft`, the dimensions sequentially, the last one first. Scratch: a block of lines for each
//! task.

use super::lines::{Transform, pass, rows, source};
use super::options::{dims, scale};
use crate::number::Number;
use keyway_cpu_loops::{CallExt, ViewExt};
use keyway_sdk::author::strided::row_major;
use keyway_sdk::author::{Call, Element, Error, Plain, View};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// The transform of a line, times a factor.
pub struct Line<T: Number> {
    plan: Arc<dyn Fft<T>>,
    scale: T,
}

impl<T: Number> Line<T> {
    /// The transform of lines of `len` elements.
    pub fn new(len: usize, forward: bool, scale: T) -> Line<T> {
        let plan = T::complex().get(len, forward, || {
            let mut planner = FftPlanner::new();
            if forward { planner.plan_fft_forward(len) } else { planner.plan_fft_inverse(len) }
        });
        Line { plan, scale }
    }
}

impl<T: Number> Transform for Line<T>
where
    Complex<T>: Plain + Element,
{
    type From = Complex<T>;
    type To = Complex<T>;
    type Part = T;

    fn scratch(&self) -> usize {
        self.plan.get_outofplace_scratch_len()
    }

    fn lines(
        &self,
        from: &mut [Complex<T>],
        to: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) -> Result<(), Error> {
        self.plan.process_outofplace_with_scratch(from, to, scratch);
        multiply(to, self.scale);
        Ok(())
    }
}

/// Multiplies by a factor.
pub fn multiply<T: Number>(line: &mut [Complex<T>], scale: T) {
    if scale != T::one() {
        line.iter_mut().for_each(|z| *z = z.scale(scale));
    }
}

/// Transforms `from`, or `to` itself, along `dims`, the last one first, to `to` of the sizes `sizes` in row-major order. No output of
/// the call overlaps `from`, unless it has a buffer.
///
/// # Errors
/// Memory that does not suffice.
pub fn transform<T: Number>(
    sizes: &[i64],
    dims: &[usize],
    from: Option<&View<'_, Complex<T>>>,
    to: &mut [Complex<T>],
    forward: bool,
    scale: T,
) -> Result<(), Error>
where
    Complex<T>: Plain + Element,
{
    let strides = row_major(sizes)?;
    let mut first = from;
    for (nth, &dim) in dims.iter().enumerate().rev() {
        let len = sizes[dim] as usize;
        let line = Line::new(len, forward, if nth == 0 { scale } else { T::one() });
        let out = rows(to, &strides, len);
        let from = first.take().map_or(out, |view| source(view, dim));
        // SAFETY: `to` has the elements of these sizes, row-major, and is borrowed exclusively; `from` is the memory of an argument
        // that no output overlaps, with its strides, or `to` itself.
        unsafe { pass(sizes, dim, from, out, &line) }?;
    }
    Ok(())
}

fn fft_c2c<T: Number>(call: &Call<'_>) -> Result<(), Error>
where
    Complex<T>: Plain + Element,
{
    let view = call.view::<Complex<T>>(0)?;
    let (dims, forward) = (dims(call, 1, view.ndim())?, call.bool(3)?);
    let count = dims.iter().map(|&dim| view.sizes()[dim] as usize).product();
    let scale = scale::<T>(call, 2, forward, count)?;
    // A buffer where the output overlaps the argument.
    let mut out = call.contiguous_out::<Complex<T>>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    if dims.is_empty() {
        out.copy_from_slice(&view.contiguous()?);
    }
    transform(view.sizes(), &dims, Some(&view), &mut out, forward, scale)
}

keyway_sdk::register_kernel! {
    op: "fft_c2c", signature: "TISb>T", device: "cpu", layout: "strided",
    c64 => fft_c2c::<f32>, c128 => fft_c2c::<f64>,
}
