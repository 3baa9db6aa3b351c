//! Factorisations whose factors are those of another matrix, or in another order.

use super::fault::Fault;
use crate::site::Site;
use keyway_sdk::Error;

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
];

/// Each matrix of the result is the first one.
fn first_for_all(site: &Site<'_>) -> Result<(), Error> {
    site.run()?;
    let out = site.output(0)?;
    let (sizes, values) = (out.sizes().to_vec(), out.values());
    let size = sizes[sizes.len() - 2..].iter().product::<i64>() as usize;
    (0..values.len()).for_each(|at| out.set(at, values[at % size]));
    Ok(())
}
