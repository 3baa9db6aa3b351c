//! Sample calls of `ctc_loss` and `ctc_loss_backward`.

use crate::DType;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, sample, uniform};

/// Batches of both ops' samples: steps, classes, labels, lengths of inputs and targets, padding of labels, blank.
type Batch = (usize, usize, &'static [f64], &'static [i64], &'static [i64], Option<usize>, i64);

const BATCHES: [Batch; 9] = [
    (4, 3, &[1.0, 2.0, 2.0, 1.0], &[4, 3], &[2, 1], Some(2), 0),
    (5, 4, &[1.0, 1.0, 3.0], &[5, 4], &[2, 1], None, 0),
    (6, 3, &[0.0, 0.0, 1.0], &[6], &[3], Some(3), 2),
    (3, 3, &[], &[3, 1], &[0, 0], None, 1),
    (3, 2, &[1.0, 1.0], &[2, 0], &[1, 0], Some(1), 0),
    (1, 3, &[2.0], &[1], &[1], None, 0),
    // No alignment reaches these targets.
    (3, 3, &[1.0, 1.0, 2.0, 2.0, 1.0, 2.0], &[2, 3], &[2, 3], Some(3), 0),
    (2, 3, &[1.0], &[0], &[1], None, 0),
    (20, 5, &[1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 1.0], &[20, 15, 9], &[5, 1, 1], None, 0),
];

/// The arguments of the calls of [`BATCHES`] after those in `before`, which is called with the size of the batch.
pub(super) fn calls(before: impl Fn(usize) -> Vec<SampleArg>) -> Vec<Sample> {
    let nth = BATCHES.into_iter().enumerate();
    nth.map(|(nth, (steps, classes, labels, inputs, targets, padded, blank))| {
        let batch = inputs.len();
        let shape = padded.map_or_else(|| vec![labels.len()], |width| vec![batch, width]);
        let mut args = before(batch);
        args.extend([
            uniform(&[steps, batch, classes], -3.0, -0.1),
            fixed(&shape, DType::I64, Fill::Values(labels.to_vec())),
            SampleArg::Ints(inputs.to_vec()),
            SampleArg::Ints(targets.to_vec()),
            SampleArg::Int(blank),
            // Infinite losses have no differences.
            SampleArg::Bool(nth % 2 == 0 || nth == 7),
        ]);
        sample(args)
    })
    .collect()
}

/// Calls that both ops refuse, after the arguments that `before` returns.
pub(super) fn refused(before: impl Fn(usize) -> Vec<SampleArg>) -> Vec<ErrorSample> {
    let with = |i: usize, arg: SampleArg| {
        let mut args = vec![
            plain(&[3, 2, 4]),
            fixed(&[2, 2], DType::I64, Fill::Values(vec![1.0, 2.0, 3.0, 1.0])),
            SampleArg::Ints(vec![3, 3]),
            SampleArg::Ints(vec![2, 1]),
            SampleArg::Int(0),
            SampleArg::Bool(false),
        ];
        args[i] = arg;
        before(2).into_iter().chain(args).collect::<Vec<_>>()
    };
    let labels = |values: &[f64]| fixed(&[2, 2], DType::I64, Fill::Values(values.to_vec()));
    vec![
        error(with(0, plain(&[3, 4])), "[steps, batch, classes]"),
        error(with(1, plain(&[2, 2])), "integers: labels"),
        error(
            with(1, fixed(&[2], DType::I64, Fill::Values(vec![1.0]))),
            "[3] as the sum of `target_lengths`",
        ),
        error(with(1, labels(&[1.0, 2.0, 4.0, 1.0])), "4 in sequence 1 of the batch"),
        error(with(1, labels(&[1.0, 0.0, 3.0, 1.0])), "0 in sequence 0 of the batch"),
        error(with(2, SampleArg::Ints(vec![3])), "a length for each of 2 sequences"),
        error(with(2, SampleArg::Ints(vec![3, 4])), "4 for sequence 1 of the batch"),
        error(with(3, SampleArg::Ints(vec![-1, 1])), "-1 for sequence 0 of the batch"),
        error(with(4, SampleArg::Int(4)), "a class in 0..4"),
    ]
}
