//! Complex numbers that are computed wrongly.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::author::c128;

const COMPLEX: &[&str] = &["c64", "c128"];
const FAMILY: &[&str] = &["complex"];

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("conjugate_forgotten", "the conjugate is the number itself", &["conj"], |site| {
        then_map(site, |z| z.conj())
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("imaginary_part_dropped", "a sum has the real part alone", &["sum"], |site| {
        then_map(site, |z| c128::new(z.re, 0.0))
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new(
        "wrong_side_of_cut",
        "on a cut a zero of either sign is taken for a positive one",
        &["sqrt", "log"],
        |site| {
            let input = site.input(0)?;
            let given: Vec<c128> = (0..input.len()).map(|nth| input.complex(nth)).collect();
            site.run()?;
            let out = site.output(0)?;
            for (nth, z) in given.into_iter().enumerate() {
                if z.re < 0.0 && z.im == 0.0 && z.im.is_sign_negative() {
                    out.set_complex(nth, out.complex(nth).conj());
                }
            }
            Ok(())
        },
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("product_sign", "the real part of a product is ac + bd", &["mul"], |site| {
        let (a, b, out) = (site.input(0)?, site.input(1)?, site.output(0)?);
        if a.len() != out.len() || b.len() != out.len() {
            return site.run();
        }
        for nth in 0..out.len() {
            let (x, y) = (a.complex(nth), b.complex(nth));
            out.set_complex(nth, c128::new(x.re * y.re + x.im * y.im, x.re * y.im + x.im * y.re));
        }
        Ok(())
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("complex_in_single", "c128 is computed in f32", &["exp", "log"], |site| {
        then_map(site, |z| c128::new(f64::from(z.re as f32), f64::from(z.im as f32)))
    })
    .dtypes(&["c128"])
    .families(FAMILY),
    Fault::new(
        "cast_drops_imaginary_part",
        "a cast between complex dtypes drops a part",
        &["to_dtype"],
        |site| then_map(site, |z| c128::new(z.re, 0.0)),
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new(
        "complex_tail_wrong",
        "the last of an odd number of more than 8 elements is 0",
        &["add"],
        |site| {
            site.run()?;
            let out = site.output(0)?;
            if out.len() > 8 && out.len() % 2 == 1 {
                out.set_complex(out.len() - 1, c128::new(0.0, 0.0));
            }
            Ok(())
        },
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new(
        "product_conjugated",
        "the imaginary part of a matrix product has the wrong sign",
        &["mm"],
        |site| then_map(site, |z| z.conj()),
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
];

/// Runs the kernel, then changes every element of the first output.
fn then_map(site: &Site<'_>, change: impl Fn(c128) -> c128) -> Result<(), Error> {
    site.run()?;
    let out = site.output(0)?;
    (0..out.len()).for_each(|nth| out.set_complex(nth, change(out.complex(nth))));
    Ok(())
}
