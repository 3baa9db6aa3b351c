//! Factorisations whose factors are those of another matrix, or in another order.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;
use keyway_sdk::author::c128;

const COMPLEX: &[&str] = &["c64", "c128"];
const REAL: &[&str] = &["f32", "f64"];
const FAMILY: &[&str] = &["linalg"];

pub(super) const FAULTS: &[Fault] = &[
    Fault::new("pivots_exchanged", "the first two pivots are exchanged", &["lu_factor"], |site| {
        site.run()?;
        let pivots = site.output(1)?;
        let values = pivots.values();
        if let [first, second, ..] = values[..] {
            pivots.set(0, second);
            pivots.set(1, first);
        }
        Ok(())
    }),
    Fault::new("upper_for_lower", "the factor is transposed", &["cholesky"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let (sizes, values) = (out.sizes().to_vec(), out.values());
        let n = sizes[sizes.len() - 1] as usize;
        for (at, value) in values.into_iter().enumerate() {
            let (matrix, row, column) = (at / (n * n), at / n % n, at % n);
            out.set(matrix * n * n + column * n + row, value);
        }
        Ok(())
    }),
    Fault::new("eigenvalues_unsorted", "eigenvalues in descending order", &["eigvalsh"], |site| {
        site.run()?;
        let out = site.output(0)?;
        let (n, values) = (out.sizes().last().map_or(1, |&n| n as usize), out.values());
        for (at, value) in values.into_iter().enumerate() {
            out.set(at / n * n + (n - 1 - at % n), value);
        }
        Ok(())
    }),
    Fault::new("first_matrix_for_all", "the stride of the batch is missing", &["cholesky"], first_for_all),
    Fault::new("signs_of_lapack", "the diagonal of R is negative", &["qr"], |site| {
        site.run()?;
        for index in 0..2 {
            let out = site.output(index)?;
            out.values().into_iter().enumerate().for_each(|(at, value)| out.set(at, -value));
        }
        Ok(())
    }),
    Fault::new(
        "upper_without_conjugate",
        "the upper factor is the transpose of the lower one",
        &["cholesky"],
        |site| {
            if site.call.bool(1)? { conjugated(site, 0) } else { site.run() }
        },
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new(
        "adjoint_conjugated",
        "the solution with the adjoint is the conjugate",
        &["lu_solve"],
        |site| {
            if site.call.bool(4)? { conjugated(site, 0) } else { site.run() }
        },
    )
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("q_without_conjugate", "Q is that of the conjugate matrix", &["qr"], |site| {
        conjugated(site, 0)
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("hermitian_vectors_conjugated", "vectors of the transposed matrix", &["eigh"], |site| {
        conjugated(site, 1)
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new("vectors_transposed_alone", "Vᵀ instead of Vᴴ", &["svd"], |site| conjugated(site, 2))
        .dtypes(COMPLEX)
        .families(FAMILY),
    Fault::new("any_phase", "eigenvectors are multiplied by i", &["eigh"], |site| {
        site.run()?;
        let out = site.output(1)?;
        (0..out.len()).for_each(|nth| out.set_complex(nth, out.complex(nth) * c128::new(0.0, 1.0)));
        Ok(())
    })
    .dtypes(COMPLEX)
    .families(FAMILY),
    Fault::new(
        "pairs_in_other_order",
        "the value with the negative imaginary part is first",
        &["eig"],
        |site| conjugated(site, 0),
    )
    .dtypes(REAL)
    .families(FAMILY),
    Fault::new(
        "pair_of_equal_vectors",
        "the second vector of a pair is not the conjugate",
        &["eig"],
        |site| {
            site.run()?;
            let (values, out) = (site.output(0)?, site.output(1)?);
            let n = values.sizes().last().map_or(1, |&n| n as usize);
            for nth in 0..out.len() {
                let value = nth / (n * n) * n + nth % n;
                if values.complex(value).im < 0.0 {
                    out.set_complex(nth, out.complex(nth).conj());
                }
            }
            Ok(())
        },
    )
    .dtypes(REAL)
    .families(FAMILY),
];

/// One result is the conjugate of the right one.
fn conjugated(site: &Site<'_>, output: usize) -> Result<(), Error> {
    site.run()?;
    let out = site.output(output)?;
    (0..out.len()).for_each(|nth| out.set_complex(nth, out.complex(nth).conj()));
    Ok(())
}

/// Each matrix of the result is the first one.
fn first_for_all(site: &Site<'_>) -> Result<(), Error> {
    site.run()?;
    let out = site.output(0)?;
    let (sizes, values) = (out.sizes().to_vec(), out.values());
    let size = sizes[sizes.len() - 2..].iter().product::<i64>() as usize;
    (0..values.len()).for_each(|at| out.set(at, values[at % size]));
    Ok(())
}
