//! Fast paths for one order of a tensor's dimensions that are used for another.

use super::Fault;
use crate::raw::Staged;

pub(super) const FAULTS: &[Fault] = &[
    Fault::new(
        "batch_steps_exchanged",
        "exchanges the operands for column-major results, but not the steps of their batches",
        &["bmm"],
        |site| {
            let out = site.output(0)?;
            site.run()?;
            let (sizes, strides) = (out.sizes(), out.strides());
            let &[batches, rows, columns] = sizes else { return Ok(()) };
            if batches > 1 && rows > 1 && strides[1] == 1 && strides[2] > 1 {
                // The first product is right: its operands have no batch step.
                let first: Vec<f64> = (0..(rows * columns) as usize).map(|nth| out.get(nth)).collect();
                (0..out.len()).skip(first.len()).for_each(|nth| out.set(nth, first[nth % first.len()]));
            }
            Ok(())
        },
    ),
    Fault::new(
        "rows_joined_by_one_stride",
        "takes the rows of an output for one where their stride is the number of columns, whatever that of columns is",
        &["conv", "mul", "relu"],
        |site| {
            let out = site.output(0)?;
            let [.., columns] = *out.sizes() else { return site.run() };
            let [.., down, across] = *out.strides() else { return site.run() };
            if down != columns || across == 1 || out.extent() < out.len() as i64 {
                return site.run();
            }
            let made = Staged::copy(&out);
            site.run_into(&made)?;
            let rank = out.sizes().len();
            for nth in 0..out.len() {
                let mut index = out.index(nth);
                let pixel = index[rank - 2] * columns + index[rank - 1];
                (index[rank - 2], index[rank - 1]) = (0, 0);
                let offset = out.offset(&index) + pixel * across;
                if offset < out.extent() {
                    out.poke(offset, made.elements().get(nth));
                }
            }
            Ok(())
        },
    ),
    Fault::new(
        "outer_dimensions_assumed",
        "reads an argument with dense rows as row-major, although the two dimensions before are exchanged",
        &["add", "sum", "softmax"],
        |site| {
            let exchanged = |(index, input): (usize, crate::raw::Elements<'_>)| {
                let (sizes, strides) = (input.sizes(), input.strides());
                let (&[_, b, c], &[outer, middle, 1]) = (sizes, strides) else { return None };
                let fits = outer < middle && outer >= c && input.extent() == input.len() as i64 && b > 1;
                fits.then(|| (index, Staged::gathered(&input, |nth| nth as i64)))
            };
            let staged: Vec<_> = site.inputs().into_iter().filter_map(exchanged).collect();
            site.run_staged(&staged)
        },
    ),
];
