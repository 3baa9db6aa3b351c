//! Forward and backward passes of sparse tensors so large that no strided tensor of their sizes could be held. What is
//! computed is what the same entries give in a small strided tensor.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::autograd::{BackwardOptions, grad};
use keyway::{DType, Device, Tensor};
use keyway_dispatcher::device::{memory_stats, reset_peak};

/// Rows and columns of the small case; those of the large one are this many times `STEP`.
const SMALL: usize = 12;
const STEP: i64 = 1 << 13;

/// A function of a matrix and of its strides.
type Case = fn(&Tensor, i64) -> keyway::Result<Tensor>;

const CASES: &[(&str, Case)] = &[
    ("itself", |s, _| Ok(s.clone())),
    ("index_select", |s, step| s.index_select(0, &ints(&[3 * step, 5 * step, 3 * step], &[3]))),
    ("index_select 1", |s, step| s.index_select(1, &ints(&[7 * step, step], &[2]))),
    ("select", |s, step| s.select(0, 5 * step)),
    ("select 1", |s, step| s.select(1, 4 * step)),
    ("one element", |s, step| s.select(0, 5 * step)?.select(0, 4 * step)),
    ("slice", |s, step| s.slice(0, Some(2 * step), Some(9 * step), 1)),
    ("narrow", |s, step| s.narrow(1, 3 * step, (6 * step) as usize)),
    ("split", |s, step| Ok(s.split((4 * step) as usize, 0)?.remove(1))),
    ("chunk", |s, _| s.chunk(3, 1)?.remove(2).mul(3)),
    ("unbind", |s, step| Ok(s.narrow(0, 5 * step, 1)?.unbind(0)?.remove(0))),
    ("two parts", |s, step| s.select(0, 5 * step)?.add(&s.select(0, 3 * step)?)),
    ("mm", |s, _| s.mm(&s.t()?)),
    ("mm twice", |s, _| s.mm(&s.mul(2)?)?.mm(s)),
    ("matmul and more", |s, _| s.mm(s)?.mul(2)?.add(s)),
    ("sum", |s, _| s.sum(0)),
    ("sum of rows", |s, _| s.sum_keepdim(1)),
    ("sum of both", |s, _| s.sum((0, 1))),
    ("sum of a product", |s, _| s.mul(s)?.sum(1)?.square()),
    ("mean", |s, step| s.mean(0)?.mul(step)),
    ("mean of both", |s, step| s.mean_keepdim((0, 1))?.mul(step * step)),
    ("mul", |s, _| s.mul(2)),
    ("mul itself", |s, _| s.mul(&s.mul(3)?)),
    ("div", |s, _| s.div(4)),
    ("sub", |s, _| s.sub(&s.mul(0.25)?)),
    ("add_with", |s, _| s.add_with(&s.square()?, -1.5)),
    ("neg", |s, _| s.neg()),
    ("to_dtype", |s, _| s.to_dtype(DType::F32)?.mul(2)),
    ("sin", |s, _| s.sin()?.mul(2)),
    ("t", |s, _| s.t()?.mul(2)),
    ("permute", |s, _| s.permute([1, 0])),
    ("unsqueeze", |s, _| s.unsqueeze(1)?.mul(2)?.squeeze(1)),
    ("cat", |s, _| Tensor::cat(&[s, &s.mul(2)?], 0)),
    ("stack", |s, _| Tensor::stack(&[s, &s.mul(2)?], 0)),
    ("sum 0", |s, _| s.sum(0)),
    ("sum 1", |s, _| s.mul(2)?.sum(1)),
    ("sparse_mask", |s, _| s.sparse_mask(s)?.mul(2)),
    ("norm", |s, _| s.mul(2)?.norm(..)),
    ("amax", |s, _| s.mul(2)?.amax(1)),
    ("coalesce", |s, _| s.mul(2)?.coalesce()),
];

/// The coordinates of the entries, with some duplicates.
fn places() -> Vec<[i64; 2]> {
    let mut all: Vec<[i64; 2]> = (0..40).map(|i| [(i * 5 + i / 7) % 12, (i * 7 + i / 5) % 12]).collect();
    all.extend([[5, 4], [5, 4], [3, 7], [5, 1]]);
    all
}

fn values(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.45).collect()
}

fn entries(places: &[[i64; 2]], step: i64) -> Tensor {
    let rows = (0..2).flat_map(|row| places.iter().map(move |at| at[row] * step)).collect::<Vec<_>>();
    ints(&rows, &[2, places.len()])
}

/// The result's sum and the gradients of the function's values and of their squares.
fn losses(case: Case, s: &Tensor, step: i64) -> keyway::Result<Vec<Tensor>> {
    let made = case(s, step)?;
    Ok(vec![made.sum_all()?, made.square()?.sum_all()?])
}

#[test]
fn backward_passes_need_memory_for_entries_alone() {
    let _one = load(PLUGINS);
    let places = places();
    let at = |grad: Vec<f64>| -> Vec<f64> {
        places.iter().map(|at| grad[at[0] as usize * SMALL + at[1] as usize]).collect()
    };
    let numbers = values(places.len());
    let size = SMALL * STEP as usize;
    for (name, case) in CASES {
        for nth in 0..2 {
            let small =
                Tensor::sparse_coo(&entries(&places, 1), &floats(&numbers, &[numbers.len()]), [SMALL, SMALL]);
            let small = small.unwrap().to_dense().unwrap().requires_grad_(true).unwrap();
            let wanted =
                losses(*case, &small, 1).unwrap_or_else(|e| panic!("{name}, strided: {e}")).remove(nth);
            wanted.backward().unwrap();
            let gradient = at(small.grad().unwrap().to_vec_f64().unwrap());
            let wanted = wanted.to_vec_f64().unwrap();
            for of_leaf in [false, true] {
                let which = format!("{name}, {nth}, of a leaf {of_leaf}");
                reset_peak(Device::CPU).unwrap();
                let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
                let v = floats(&numbers, &[numbers.len()]).requires_grad_(!of_leaf).unwrap();
                let s = Tensor::sparse_coo(&entries(&places, STEP), &v, [size, size]).unwrap();
                let s = if of_leaf { s.requires_grad_(true).unwrap() } else { s };
                let loss = losses(*case, &s, STEP).unwrap_or_else(|e| panic!("{which}: {e}")).remove(nth);
                loss.backward().unwrap_or_else(|e| panic!("{which}: {e}"));
                assert_close(&loss.to_vec_f64().unwrap(), &wanted, 1e-4);
                let made = if of_leaf { s.grad().unwrap().values().unwrap() } else { v.grad().unwrap() };
                assert_close(&made.to_vec_f64().unwrap(), &gradient, 1e-4);
                let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
                assert!(most < 16 << 20, "{which}: {most} bytes");
            }
        }
    }
}

/// A strided factor that is broadcast to a matrix has as small a gradient as it is itself.
#[test]
fn what_is_broadcast_needs_memory_for_its_own_elements() {
    let _one = load(PLUGINS);
    let (places, numbers) = (places(), values(places().len()));
    type Scaling = fn(&Tensor, &Tensor) -> keyway::Result<Tensor>;
    let scalings: [(&str, Scaling); 3] =
        [("mul", |s, by| s.mul(by)), ("mul before", |s, by| by.mul(s)), ("div", |s, by| s.div(by))];
    let layouts: [fn(&Tensor) -> keyway::Result<Tensor>; 2] = [|s| Ok(s.clone()), Tensor::to_sparse_csr];
    let run = |scaling: Scaling, layout: usize, which: usize, step: i64| -> keyway::Result<[Vec<f64>; 2]> {
        let size = SMALL * step as usize;
        let mut factor = vec![1.0; size];
        (0..SMALL).for_each(|i| factor[i * step as usize] = 0.5 + i as f64 / 3.0);
        let factor = match which {
            0 => leaf(&[1.5], &[]),
            1 => leaf(&factor, &[size]),
            _ => leaf(&factor, &[size, 1]),
        };
        let s =
            Tensor::sparse_coo(&entries(&places, step), &floats(&numbers, &[numbers.len()]), [size, size])?;
        let loss = scaling(&layouts[layout](&s)?, &factor)?.square()?.sum_all()?;
        let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
        let first = grad(&[&loss], &[&factor], options)?.remove(0).unwrap();
        let second = grad(&[first.square()?.sum_all()?], &[&factor], BackwardOptions::default())?.remove(0);
        let at = |t: Tensor| -> keyway::Result<Vec<f64>> {
            let all = t.to_vec_f64()?;
            Ok(all.iter().step_by(if which == 0 { 1 } else { step as usize }).copied().collect())
        };
        Ok([at(first)?, at(second.unwrap())?])
    };
    for (name, scaling) in scalings {
        for (layout, which) in (0..2).flat_map(|layout| (0..3).map(move |which| (layout, which))) {
            let name = format!("{name}, layout {layout}, factor {which}");
            reset_peak(Device::CPU).unwrap();
            let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
            let far = run(scaling, layout, which, STEP).unwrap_or_else(|e| panic!("{name}: {e}"));
            let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
            assert!(most < 16 << 20, "{name}: {most} bytes");
            let near = run(scaling, layout, which, 1).unwrap_or_else(|e| panic!("{name}, near: {e}"));
            std::iter::zip(far, near).for_each(|(far, near)| assert_close(&far, &near, 1e-9));
        }
    }
}

type Reduction = fn(&Tensor) -> keyway::Result<Tensor>;

/// Reductions of a matrix of blocks of two numbers; unstored elements do not contribute to the sum of squares.
const LINES: &[(&str, Reduction)] = &[
    ("sum", |s| s.sum(1)),
    ("sum of blocks", |s| s.sum(2)),
    ("sum of lines of blocks", |s| s.sum((0, 2))),
    ("mean of blocks", |s| s.mean_keepdim(2)),
    ("norm", |s| s.norm(1)),
    ("norm, kept", |s| s.norm_keepdim(0)),
    ("norm of blocks", |s| s.norm(2)),
    ("norm of lines of blocks", |s| s.norm((1, 2))),
    ("norm of lines of blocks, kept", |s| s.norm_keepdim((0, 2))),
    ("norm of all", |s| s.norm(..)),
    ("largest magnitude", |s| s.norm_with(f64::INFINITY, 1, false)),
    ("norm of 3", |s| s.norm_with(3.0, 0, true)),
    ("amax", |s| s.amax(1)),
    ("amax, kept", |s| s.amax_keepdim(0)),
    ("amax of blocks", |s| s.amax(2)),
    ("amin of lines of blocks", |s| s.amin((1, 2))),
    ("amin of all", |s| s.amin(..)),
    ("softmax", |s| s.softmax(1)),
    ("softmax of columns", |s| s.softmax(0)),
    ("log_softmax", |s| s.log_softmax(1)),
    ("log_softmax of columns", |s| s.log_softmax(0)),
];

#[test]
fn reductions_and_their_gradients_need_no_memory_for_the_lines_that_stay() {
    let _one = load(PLUGINS);
    let places = places();
    let numbers = values(2 * places.len());
    let run = |name: &str, case: Reduction, step: i64| -> [Vec<f64>; 3] {
        let v = floats(&numbers, &[places.len(), 2]).requires_grad_(true).unwrap();
        let size = SMALL * step as usize;
        reset_peak(Device::CPU).unwrap();
        let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
        let s = Tensor::sparse_coo(&entries(&places, step), &v, [size, size, 2]).unwrap();
        let loss = case(&s)
            .and_then(|made| made.square()?.sum_all())
            .unwrap_or_else(|e| panic!("{name}, {step} apart: {e}"));
        let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
        let first = grad(&[&loss], &[&v], options)
            .unwrap_or_else(|e| panic!("{name}, {step} apart, backward: {e}"))
            .remove(0)
            .unwrap();
        let second = grad(&[first.square().unwrap().sum_all().unwrap()], &[&v], BackwardOptions::default())
            .unwrap_or_else(|e| panic!("{name}, {step} apart, second derivative: {e}"))
            .remove(0);
        let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
        assert!(most < 1 << 20, "{name}, {step} apart: {most} bytes");
        let second = second.map_or_else(Vec::new, |second| second.to_vec_f64().unwrap());
        [loss.to_vec_f64().unwrap(), first.to_vec_f64().unwrap(), second]
    };
    for (name, case) in LINES {
        let [near, far] = [1, 1 << 25].map(|step| run(name, *case, step));
        for (near, far) in std::iter::zip(near, far) {
            assert_eq!(near.len(), far.len(), "{name}");
            assert_close(&far, &near, 1e-9);
        }
    }
}

#[test]
fn gradients_of_stacks_of_products_are_of_their_entries() {
    let _one = load(PLUGINS);
    let places: Vec<[i64; 3]> = places().iter().zip(0..).map(|(at, n)| [n % 2, at[0], at[1]]).collect();
    let numbers = values(places.len());
    let entries = |step: i64| {
        let place = |row: usize, at: &[i64; 3]| if row == 0 { at[0] } else { at[row] * step };
        let rows: Vec<i64> = (0..3).flat_map(|row| places.iter().map(move |at| place(row, at))).collect();
        ints(&rows, &[3, places.len()])
    };
    // The rows that entries meet are the same in both sizes, and the others hold what meets none.
    let dense = |step: i64| {
        let rows = SMALL * step as usize;
        let at =
            |i: usize| ((i % 2 + i / 2 % rows / step as usize * 3 + i / (2 * rows) * 5) % 11) as f64 - 4.5;
        floats(&(0..2 * rows * 2).map(at).collect::<Vec<_>>(), &[2, rows, 2])
    };
    type Case = fn(&Tensor, &Tensor) -> keyway::Result<Tensor>;
    let cases: [(&str, Case); 4] = [
        ("by strided", |s, d| s.bmm(d)),
        ("of strided", |s, d| d.transpose(1, 2)?.bmm(s)),
        ("by sparse", |s, _| s.bmm(&s.transpose(1, 2)?)),
        ("more", |s, d| s.mul(2)?.bmm(s)?.bmm(d)),
    ];
    for (name, case) in cases {
        let run = |s: &Tensor, d: &Tensor| {
            let loss =
                case(s, d).and_then(|t| t.square()?.sum_all()).unwrap_or_else(|e| panic!("{name}: {e}"));
            loss.backward().unwrap_or_else(|e| panic!("{name}: {e}"));
            loss.to_vec_f64().unwrap()
        };
        let small = Tensor::sparse_coo(&entries(1), &floats(&numbers, &[numbers.len()]), [2, SMALL, SMALL]);
        let small = small.unwrap().to_dense().unwrap().requires_grad_(true).unwrap();
        let wanted = run(&small, &dense(1));
        let grad = small.grad().unwrap().to_vec_f64().unwrap();
        let at = |at: &[i64; 3]| grad[(at[0] as usize * SMALL + at[1] as usize) * SMALL + at[2] as usize];
        let size = SMALL * STEP as usize;
        let v = leaf(&numbers, &[numbers.len()]);
        let s = Tensor::sparse_coo(&entries(STEP), &v, [2, size, size]).unwrap();
        let d = dense(STEP);
        reset_peak(Device::CPU).unwrap();
        let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
        assert_close(&run(&s, &d), &wanted, 1e-6);
        assert_close(
            &v.grad().unwrap().to_vec_f64().unwrap(),
            &places.iter().map(at).collect::<Vec<_>>(),
            1e-6,
        );
        let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
        assert!(most < 32 << 20, "{name}: {most} bytes");
    }
}
