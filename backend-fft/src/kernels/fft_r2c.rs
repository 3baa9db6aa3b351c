//! `fft_r2c`: real lines of `realfft` along the last dimension, complex ones along the others. Scratch: a block of lines for each
//! task.

use super::fft_c2c::{multiply, transform};
use super::lines::{Transform, pass, rows, source};
use super::options::{dims, scale};
use crate::number::Number;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::strided::row_major;
use keyway_sdk::author::{Call, Element, Error, Plain};
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use std::sync::Arc;

/// The transform of a real line, times a factor.
struct Line<T: Number> {
    plan: Arc<dyn RealToComplex<T>>,
    /// Elements of a line of the output: half the spectrum, or all of it.
    written: usize,
    scale: T,
}

impl<T: Number> Transform for Line<T>
where
    Complex<T>: Plain + Element,
{
    type From = T;
    type To = Complex<T>;
    type Part = T;

    fn scratch(&self) -> usize {
        self.plan.get_scratch_len()
    }

    fn lines(&self, from: &mut [T], to: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> Result<(), Error> {
        let (len, half) = (self.plan.len(), self.plan.complex_len());
        for (from, to) in from.chunks_exact_mut(len).zip(to.chunks_exact_mut(self.written)) {
            self.plan
                .process_with_scratch(from, &mut to[..half], scratch)
                .map_err(|error| Error::Failed { detail: error.to_string() })?;
            multiply(&mut to[..half], self.scale);
            // The rest of the whole spectrum: element `k` is the conjugate of element `len - k`.
            for k in half..to.len() {
                to[k] = to[len - k].conj();
            }
        }
        Ok(())
    }
}

fn fft_r2c<T: Number>(call: &Call<'_>) -> Result<(), Error>
where
    Complex<T>: Plain + Element,
{
    let view = call.view::<T>(0)?;
    let (dims, onesided) = (dims(call, 1, view.ndim())?, call.bool(3)?);
    let Some((&last, others)) = dims.split_last() else {
        return Err(Error::Unsupported { what: "no dimension".into() });
    };
    let count = dims.iter().map(|&dim| view.sizes()[dim] as usize).product();
    let scale = scale::<T>(call, 2, true, count)?;
    let mut out = call.contiguous_out::<Complex<T>>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    let len = view.sizes()[last] as usize;
    let written = if onesided { len / 2 + 1 } else { len };
    let mut sizes = view.sizes().to_vec();
    sizes[last] = written as i64;
    let strides = row_major(&sizes)?;
    let plan = T::forward().get(len, true, || RealFftPlanner::new().plan_fft_forward(len));
    let line = Line { plan, written, scale: if others.is_empty() { scale } else { T::one() } };
    // SAFETY: the output has the elements of these sizes, row-major, and is borrowed exclusively; no output overlaps the argument,
    // which is read with its strides.
    unsafe { pass(&sizes, last, source(&view, last), rows(&mut out, &strides, written), &line) }?;
    transform(&sizes, others, None, &mut out, true, scale)
}

keyway_sdk::register_kernel! {
    op: "fft_r2c", signature: "TISb>T", device: "cpu", layout: "strided",
    f32 => fft_r2c::<f32>, f64 => fft_r2c::<f64>,
}
