//! Fourier transforms of another direction, factor or length. Elements are read as pairs of real and imaginary parts.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::abi::codes::dtype;
use keyway_sdk::abi::tensor::RawTensor;

const ALL: &[&str] = &["fft_c2c", "fft_r2c", "fft_c2r"];
const FAMILY: &[&str] = &["fft"];

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("fft_inverse_for_forward", "the direction is ignored", &["fft_c2c"], |site| {
        let mut arg = site.args()[3];
        arg.value = 1;
        site.run_with(3, arg)
    })
    .families(FAMILY),
    Fault::new("fft_unscaled", "the inverse is not divided", &["fft_c2c", "fft_c2r"], |site| {
        let inverse = site.kernel.op == "fft_c2r" || !site.call.bool(3)?;
        let by = if inverse && site.call.str(2)? == "backward" { count(site)? } else { 1.0 };
        scaled(site, by)
    })
    .families(FAMILY),
    Fault::new("fft_ortho_of_a_line", "the factor of one dimension", ALL, |site| {
        let dims = site.call.ints(1)?.len() as f64;
        let by = if site.call.str(2)? == "ortho" && dims > 1.0 {
            count(site)?.powf(0.5 - 0.5 / dims)
        } else {
            1.0
        };
        scaled(site, by)
    })
    .families(FAMILY),
    Fault::new(
        "fft_half_of_odd",
        "the last element of an odd half spectrum is the conjugate",
        &["fft_r2c"],
        |site| {
            site.run()?;
            let (out, dims) = (site.output(0)?, site.call.ints(1)?);
            let input = site.input(0)?.sizes();
            let last =
                dims.last().map_or(0, |&dim| if dim < 0 { dim + input.len() as i64 } else { dim }) as usize;
            if site.call.bool(3)? && input[last] % 2 == 1 && input[last] > 1 {
                let at = out.sizes()[last] - 1;
                parts(out.raw(), |index, im| if index[last] == at { -im } else { im });
            }
            Ok(())
        },
    )
    .families(FAMILY),
    Fault::new("fft_conjugate", "the spectrum is the conjugate", &["fft_r2c"], |site| {
        site.run()?;
        parts(site.output(0)?.raw(), |_, im| -im);
        Ok(())
    })
    .families(FAMILY),
];

/// The elements of one transform.
fn count(site: &Site<'_>) -> Result<f64, Error> {
    let real = if site.kernel.op == "fft_c2r" { site.output(0)?.sizes() } else { site.input(0)?.sizes() };
    let at = |dim: i64| if dim < 0 { dim + real.len() as i64 } else { dim };
    Ok(site.call.ints(1)?.iter().map(|&dim| real[at(dim) as usize] as f64).product())
}

/// Runs the kernel, then multiplies its result.
fn scaled(site: &Site<'_>, by: f64) -> Result<(), Error> {
    site.run()?;
    each(site.output(0)?.raw(), |_, re, im| (re * by, im * by));
    Ok(())
}

/// Changes the imaginary part of each element.
fn parts(tensor: &RawTensor, change: impl Fn(&[i64], f64) -> f64) {
    each(tensor, |index, re, im| (re, change(index, im)));
}

/// Changes each element, by its index.
fn each(tensor: &RawTensor, change: impl Fn(&[i64], f64, f64) -> (f64, f64)) {
    let ndim = tensor.ndim as usize;
    // SAFETY: sizes and strides have `ndim` entries while the tensor lives; the host upholds this.
    let (sizes, strides) = unsafe {
        (std::slice::from_raw_parts(tensor.sizes, ndim), std::slice::from_raw_parts(tensor.strides, ndim))
    };
    for nth in 0..tensor.numel.max(0) {
        let mut index = vec![0; ndim];
        let mut rest = nth;
        for (place, &size) in index.iter_mut().zip(sizes).rev() {
            *place = rest % size.max(1);
            rest /= size.max(1);
        }
        let offset: i64 = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
        macro_rules! change {
            ($part:ty, $parts:literal) => {{
                // SAFETY: the offset is that of an element of the output, which is aligned to its parts.
                unsafe {
                    let at = tensor.data.cast::<$part>().offset($parts * offset as isize);
                    let im = if $parts == 2 { f64::from(*at.add(1)) } else { 0.0 };
                    let (re, im) = change(&index, f64::from(*at), im);
                    *at = re as $part;
                    if $parts == 2 {
                        *at.add(1) = im as $part;
                    }
                }
            }};
        }
        match tensor.dtype {
            dtype::F32 => change!(f32, 1),
            dtype::F64 => change!(f64, 1),
            dtype::C64 => change!(f32, 2),
            _ => change!(f64, 2),
        }
    }
}
