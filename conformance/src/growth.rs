//! Samples with other sizes. Equal sizes in a sample are assumed to be the same dimension, as the columns of one matrix and
//! the rows of the next, and remain equal: so most samples can be resized without knowledge of their op.

use crate::families::tensors;
use keyway::ops::sample::{Fill, Sample, SampleArg, TensorSample};

/// The scalar arguments that are sizes too, and are changed together with those of the tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Lists of integers, as `normalized_shape`, and the limits of indices.
    Lists,
    /// The limits of indices.
    Limits,
    /// No scalar arguments.
    Nothing,
}

/// The distinct sizes above 1 of a sample's tensors, in the order of their first use.
pub fn sizes(sample: &Sample) -> Vec<usize> {
    let mut found = Vec::new();
    for &size in tensors(sample).flat_map(|t| &t.sizes) {
        if size > 1 && !found.contains(&size) {
            found.push(size);
        }
    }
    found
}

/// The sample with each size `from` replaced by `to`.
pub fn resized(sample: &Sample, changes: &[(usize, usize)], named: Named) -> Sample {
    let new = |size: usize| changes.iter().find(|(from, _)| *from == size).map_or(size, |(_, to)| *to);
    let new_int = |number: i64| usize::try_from(number).map_or(number, |size| new(size) as i64);
    let resize = |t: &mut TensorSample| {
        t.sizes.iter_mut().for_each(|size| *size = new(*size));
        if let (Fill::Index(limit), true) = (&mut t.fill, named != Named::Nothing) {
            *limit = new_int(*limit);
        }
    };
    let mut sample = sample.clone();
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => resize(t),
            SampleArg::Tensors(list) => list.iter_mut().for_each(resize),
            SampleArg::Ints(list) if named == Named::Lists => {
                list.iter_mut().for_each(|number| *number = new_int(*number));
            }
            _ => {}
        }
    }
    sample
}

fn numel(t: &TensorSample) -> usize {
    t.sizes.iter().product()
}

/// The sample with every size above 1 multiplied, so that sizes that must agree still do.
pub fn enlarged(sample: &Sample, elements: f64) -> Sample {
    let Some(largest) = tensors(sample).max_by_key(|t| numel(t)) else { return sample.clone() };
    // Tensors of several shapes may have a result that is larger than all of them.
    let alike = tensors(sample).all(|t| t.sizes == largest.sizes);
    let vectors = tensors(sample).all(|t| t.sizes.len() == 1);
    let elements = match (alike, vectors) {
        (true, _) => elements,
        (false, false) => elements / 8.0,
        (false, true) => elements / 128.0,
    };
    let longer = largest.sizes.iter().filter(|&&s| s > 1).count().max(1);
    let factor = (elements / numel(largest).max(1) as f64).powf(1.0 / longer as f64).max(1.0) as usize;
    let mut sample = sample.clone();
    let enlarge = |sizes: &mut Vec<usize>| sizes.iter_mut().filter(|s| **s > 1).for_each(|s| *s *= factor);
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => enlarge(&mut t.sizes),
            SampleArg::Tensors(list) => list.iter_mut().for_each(|t| enlarge(&mut t.sizes)),
            _ => {}
        }
    }
    sample
}

/// Estimated number of steps of a call on the sample: the product of all sizes, each counted as often as it occurs in one tensor.
/// This is the cost of a matrix product, a convolution, a broadcast sum.
pub fn steps(sample: &Sample) -> usize {
    steps_with(sample, |size| size)
}

/// The same with each size replaced; several sizes may become equal.
pub fn steps_with(sample: &Sample, length: impl Fn(usize) -> usize) -> usize {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for t in tensors(sample) {
        for &size in &t.sizes {
            let count = t.sizes.iter().filter(|&&other| other == size).count();
            match all.iter_mut().find(|(known, _)| *known == size) {
                Some((_, most)) => *most = count.max(*most),
                None => all.push((size, count)),
            }
        }
    }
    all.into_iter()
        .fold(1, |steps, (size, count)| steps.saturating_mul(length(size).saturating_pow(count as u32)))
}

/// Sizes assigned to a sample together, in order of first use; then smaller ones, for samples whose calls would take too
/// many steps.
const TOGETHER: [[usize; 4]; 6] =
    [[130, 67, 5, 3], [67, 21, 5, 3], [35, 13, 5, 3], [19, 7, 5, 3], [11, 7, 5, 3], [7, 5, 3, 3]];

/// The sample with all sizes replaced by different ones that are not a multiple of a vector width; `turn` determines the
/// largest. `None` if none is within `limit` steps.
pub fn together(sample: &Sample, turn: usize, limit: usize) -> Option<Vec<(usize, usize)>> {
    let from = sizes(sample);
    let changes = |to: &[usize; 4]| -> Vec<(usize, usize)> {
        let target_of = |nth: usize| (nth + turn) % from.len();
        from.iter().enumerate().map(|(nth, &size)| (size, to[target_of(nth).min(3)])).collect()
    };
    let all = TOGETHER.iter().map(changes);
    let mut fitting = all.filter(|changes| steps(&resized(sample, changes, Named::Nothing)) <= limit);
    (!from.is_empty()).then(|| fitting.next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway::ops::sample::{index, plain, sample};

    fn sizes_of(sample: &Sample) -> Vec<Vec<usize>> {
        tensors(sample).map(|t| t.sizes.clone()).collect()
    }

    #[test]
    fn equal_sizes_stay_equal() {
        let linear = sample([plain(&[2, 4, 3]), plain(&[2, 3]), SampleArg::Ints(vec![3, 0])]);
        assert_eq!(sizes(&linear), [2, 4, 3]);
        let grown = resized(&linear, &[(3, 67)], Named::Lists);
        assert_eq!(sizes_of(&grown), [vec![2, 4, 67], vec![2, 67]]);
        assert_eq!(grown.args[2], SampleArg::Ints(vec![67, 0]));
        assert_eq!(resized(&linear, &[(3, 67)], Named::Limits).args[2], linear.args[2]);
        assert_eq!((steps(&linear), steps(&grown)), (24, 536));
        // A size that becomes equal to another old size must not be replaced twice.
        assert_eq!(sizes_of(&resized(&linear, &[(2, 4), (4, 5)], Named::Lists)), [vec![4, 5, 3], vec![4, 3]]);
    }

    #[test]
    fn the_limits_of_indices_are_sizes() {
        let gather = sample([plain(&[5, 3]), index(&[2, 3], 5)]);
        let limit = |named| match &resized(&gather, &[(5, 9)], named).args[1] {
            SampleArg::Tensor(t) => t.fill.clone(),
            _ => Fill::Uniform(0.0, 0.0),
        };
        assert_eq!(limit(Named::Limits), Fill::Index(9));
        assert_eq!(limit(Named::Nothing), Fill::Index(5));
    }

    #[test]
    fn all_together_take_few_steps_and_another_is_the_longest_each_turn() {
        let product = sample([plain(&[2, 3]), plain(&[3, 4])]);
        let changed = |turn| together(&product, turn, 50_000).expect("sizes");
        assert_eq!(changed(0), [(2, 130), (3, 67), (4, 5)]);
        assert_eq!(changed(1), [(2, 67), (3, 5), (4, 130)]);
        let convolution = sample([plain(&[2, 3, 5, 5]), plain(&[4, 3, 3, 3])]);
        let changes = together(&convolution, 0, 50_000).expect("sizes");
        assert!(steps(&resized(&convolution, &changes, Named::Nothing)) <= 50_000, "{changes:?}");
        assert_eq!(together(&sample([plain(&[1])]), 0, 50_000), None);
    }
}
