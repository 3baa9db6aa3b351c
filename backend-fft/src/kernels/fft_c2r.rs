//! `fft_c2r`: complex lines along all dimensions but the last, then lines to real numbers of `realfft`. Scratch: the spectrum, if
//! there are several dimensions, and a block of lines for each task.

use super::fft_c2c::transform;
use super::lines::{Transform, pass, rows, source};
use super::options::{dims, scale};
use crate::number::Number;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::strided::row_major;
use keyway_sdk::author::{Call, Element, Error, Plain, Scratch};
use realfft::{ComplexToReal, RealFftPlanner};
use rustfft::num_complex::Complex;
use std::sync::Arc;

/// The transform of half a spectrum to a real line, times a factor.
struct Line<T: Number> {
    plan: Arc<dyn ComplexToReal<T>>,
    scale: T,
}

impl<T: Number> Transform for Line<T>
where
    Complex<T>: Plain + Element,
{
    type From = Complex<T>;
    type To = T;
    type Part = T;

    fn scratch(&self) -> usize {
        self.plan.get_scratch_len()
    }

    fn lines(&self, from: &mut [Complex<T>], to: &mut [T], scratch: &mut [Complex<T>]) -> Result<(), Error> {
        let (len, half) = (self.plan.len(), self.plan.complex_len());
        for (from, to) in from.chunks_exact_mut(half).zip(to.chunks_exact_mut(len)) {
            // The imaginary parts of the spectrum of a real line at frequency 0 and at half the sampling rate are 0.
            from[0].im = T::zero();
            if len.is_multiple_of(2) {
                from[half - 1].im = T::zero();
            }
            self.plan
                .process_with_scratch(from, to, scratch)
                .map_err(|error| Error::Failed { detail: error.to_string() })?;
        }
        if self.scale != T::one() {
            to.iter_mut().for_each(|x| *x = *x * self.scale);
        }
        Ok(())
    }
}

fn fft_c2r<T: Number>(call: &Call<'_>) -> Result<(), Error>
where
    Complex<T>: Plain + Element,
{
    let view = call.view::<Complex<T>>(0)?;
    let dims = dims(call, 1, view.ndim())?;
    let Some((&last, others)) = dims.split_last() else {
        return Err(Error::Unsupported { what: "no dimension".into() });
    };
    let mut out = call.contiguous_out::<T>(0)?;
    if out.is_empty() {
        return Ok(());
    }
    let output = call.output(0)?;
    let (sizes, len) = (output.sizes(), output.sizes()[last] as usize);
    let count = dims.iter().map(|&dim| sizes[dim] as usize).product();
    let scale = scale::<T>(call, 2, false, count)?;
    let mut spectrum = Scratch::<Complex<T>>::zeroed(if others.is_empty() { 0 } else { view.numel() })?;
    let own = row_major(view.sizes())?;
    let mut from = source(&view, last);
    if !others.is_empty() {
        transform(view.sizes(), others, Some(&view), &mut spectrum, false, T::one())?;
        from = rows(&mut spectrum, &own, from.len);
    }
    let plan = T::inverse().get(len, false, || RealFftPlanner::new().plan_fft_inverse(len));
    let strides = row_major(sizes)?;
    // SAFETY: the output has the elements of these sizes, row-major, and is borrowed exclusively; the argument, which no output
    // overlaps, and the spectrum are read with their strides.
    unsafe { pass(sizes, last, from, rows(&mut out, &strides, len), &Line { plan, scale }) }
}

keyway_sdk::register_kernel! {
    op: "fft_c2r", signature: "TISi>T", device: "cpu", layout: "strided",
    c64 => fft_c2r::<f32>, c128 => fft_c2r::<f64>,
}
