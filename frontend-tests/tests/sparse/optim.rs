//! Optimizers on sparse gradients: PyTorch's values where it has them, otherwise those of strided gradients, and steps that
//! follow the rows they touch.

use crate::rehearsal_support::*;
use keyway::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions, SparseAdam,
    SparseAdamOptions,
};
use keyway::{DType, Device, Result, Tensor};
use keyway_dispatcher::device::{memory_stats, reset_peak};

const PLUGINS: &[&str] = &["keyway_backend_sparse"];
const ROWS: usize = 6;
const COLUMNS: usize = 3;
/// The rows that each step reads, some of them twice; row 3 never.
const READS: [&[i64]; 4] = [&[4, 1, 4, 0], &[2, 2], &[4], &[1, 0, 0, 1, 5, 4]];

fn table() -> Tensor {
    let values = (0..ROWS * COLUMNS).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.5).collect();
    Tensor::from_vec(values, [ROWS, COLUMNS]).unwrap().requires_grad_(true).unwrap()
}

/// The gradient of a sum of squares, each with another factor.
fn backward(table: &Tensor, rows: &[i64], sparse: bool) {
    let at = Tensor::new(rows).unwrap();
    let read = match sparse {
        true => table.embedding_sparse(&at),
        false => table.embedding(&at),
    }
    .unwrap();
    let factors: Vec<f64> = (0..read.elem_count()).map(|i| (i * 5 % 7) as f64 - 2.5).collect();
    let factors = Tensor::from_vec(factors, read.shape()).unwrap();
    read.square().unwrap().mul(&factors).unwrap().sum_all().unwrap().backward().unwrap();
}

/// Trains, from a step on to another.
fn train(table: &Tensor, optimizer: &mut dyn Optimizer, steps: std::ops::Range<usize>, sparse: bool) {
    for step in steps {
        optimizer.zero_grad();
        backward(table, READS[step % READS.len()], sparse);
        optimizer.step().unwrap();
    }
}

fn f64s(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

type Make = fn(Vec<Tensor>) -> Result<Box<dyn Optimizer>>;

/// PyTorch 2.15 in f64, eight steps.
const PYTORCHS: [(&str, Make, [f64; ROWS * COLUMNS]); 4] = [
    (
        "Adagrad",
        |p| Ok(Box::new(Adagrad::new(p, AdagradOptions { lr: 0.1, ..Default::default() })?)),
        [
            -0.12337931085535071,
            -1.278969692161947,
            0.5211575518455206,
            -0.8083278616871284,
            1.290212194442963,
            0.007067173196068807,
            -1.245218647328932,
            0.7619926663043542,
            -0.1987123845676213,
            1.6428571428571428,
            0.3571428571428572,
            -0.9285714285714286,
            1.2384847324318458,
            -0.05528638503133846,
            -1.3801375314308086,
            0.33753049525384143,
            -0.9605217495322741,
            1.3877354429594615,
        ],
    ),
    (
        "Adagrad, falling rate",
        |p| {
            let options = AdagradOptions {
                lr: 0.1,
                lr_decay: 0.1,
                initial_accumulator_value: 0.2,
                ..Default::default()
            };
            Ok(Box::new(Adagrad::new(p, options)?))
        },
        [
            0.10743554680369079,
            -1.290883462363686,
            0.568836172255021,
            -0.7378314809135247,
            1.322245065574246,
            0.03940570906508085,
            -1.2111995434343137,
            0.7930981383797107,
            -0.23134282043103158,
            1.6428571428571428,
            0.3571428571428572,
            -0.9285714285714286,
            1.2257498149832209,
            -0.09394750203650505,
            -1.383950422693921,
            0.3890656959757835,
            -0.8929244510766446,
            1.333794612829176,
        ],
    ),
    (
        "SparseAdam",
        |p| Ok(Box::new(SparseAdam::new(p, SparseAdamOptions { lr: 0.1, ..Default::default() })?)),
        [
            -0.17470389881586748,
            -1.3744712408449986,
            0.440115171793548,
            -0.8465003193878293,
            1.1857933482925693,
            -0.07850000268739965,
            -1.2160896795383889,
            0.7842071247324062,
            -0.21345729431233168,
            1.6428571428571428,
            0.3571428571428572,
            -0.9285714285714286,
            1.4105465363603689,
            0.055230398092445,
            -1.1805777634978243,
            0.3756061359857227,
            -0.9105299160985385,
            1.3390828839663866,
        ],
    ),
    (
        "SparseAdam, other options",
        |p| {
            let options = SparseAdamOptions { lr: 0.05, beta1: 0.8, beta2: 0.9, eps: 0.1 };
            Ok(Box::new(SparseAdam::new(p, options)?))
        },
        [
            0.09203671468439514,
            -1.2873544458340735,
            0.612264899220927,
            -0.6598649871453117,
            1.3412217543608964,
            0.08036805735322411,
            -1.145715181587072,
            0.8538713156668293,
            -0.29312224747180066,
            1.6428571428571428,
            0.3571428571428572,
            -0.9285714285714286,
            1.2328580487309702,
            -0.09307726328879735,
            -1.3521233963333696,
            0.4417604789963486,
            -0.8372131833042222,
            1.28026390167534,
        ],
    ),
];

const LAZY: AdamOptions =
    AdamOptions { lr: 0.1, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.05, lazy: true };

const LAZY_W: AdamWOptions =
    AdamWOptions { lr: 0.1, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.05, lazy: true };

const ALL: [(&str, Make); 7] = [
    (PYTORCHS[0].0, PYTORCHS[0].1),
    (PYTORCHS[1].0, PYTORCHS[1].1),
    (PYTORCHS[2].0, PYTORCHS[2].1),
    (PYTORCHS[3].0, PYTORCHS[3].1),
    ("lazy AdamW", |p| Ok(Box::new(AdamW::new(p, LAZY_W)?))),
    ("lazy Adam", |p| Ok(Box::new(Adam::new(p, LAZY)?))),
    ("AdamW", |p| Ok(Box::new(AdamW::new(p, AdamWOptions { lazy: false, ..LAZY_W })?))),
];

#[test]
fn trajectories_are_pytorchs() {
    let _one = load(PLUGINS);
    for (name, make, expected) in PYTORCHS {
        let w = table();
        train(&w, make(vec![w.clone()]).unwrap().as_mut(), 0..8, true);
        println!("{name}");
        assert_close(&f64s(&w), &expected, 1e-12);
    }
}

/// A step of lazy Adam with weight decay, row by row.
struct ByHand {
    decoupled: bool,
    rows: Vec<[f64; COLUMNS]>,
    means: Vec<[[f64; 2]; COLUMNS]>,
}

impl ByHand {
    fn step(&mut self, step: usize, o: &AdamOptions) {
        let read = READS[step % READS.len()];
        let factor = |nth: usize| (nth * 5 % 7) as f64 - 2.5;
        let t = step as f64 + 1.0;
        for row in 0..ROWS {
            let here: Vec<usize> = (0..read.len()).filter(|&n| read[n] == row as i64).collect();
            if here.is_empty() {
                continue;
            }
            for column in 0..COLUMNS {
                let (x, m) = (&mut self.rows[row][column], &mut self.means[row][column]);
                let sum: f64 = here.iter().map(|n| factor(n * COLUMNS + column)).sum();
                let mut grad = 2.0 * *x * sum;
                if self.decoupled {
                    *x *= 1.0 - o.lr * o.weight_decay;
                } else {
                    grad += o.weight_decay * *x;
                }
                m[0] = o.beta1 * m[0] + (1.0 - o.beta1) * grad;
                m[1] = o.beta2 * m[1] + (1.0 - o.beta2) * grad * grad;
                let (first, second) = (m[0] / (1.0 - o.beta1.powf(t)), m[1] / (1.0 - o.beta2.powf(t)));
                *x -= o.lr * first / (second.sqrt() + o.eps);
            }
        }
    }
}

#[test]
fn lazy_steps_move_and_decay_the_rows_that_were_read() {
    let _one = load(PLUGINS);
    for decoupled in [true, false] {
        let w = table();
        let start = f64s(&w);
        let rows = start.chunks(COLUMNS).map(|row| [row[0], row[1], row[2]]).collect();
        let mut by_hand = ByHand { decoupled, rows, means: vec![[[0.0; 2]; COLUMNS]; ROWS] };
        let make = if decoupled { ALL[4].1 } else { ALL[5].1 };
        let mut optimizer = make(vec![w.clone()]).unwrap();
        for step in 0..8 {
            let before = f64s(&w);
            train(&w, optimizer.as_mut(), step..step + 1, true);
            by_hand.step(step, &LAZY);
            assert_close(&f64s(&w), by_hand.rows.as_flattened(), 1e-12);
            let after = f64s(&w);
            for row in 0..ROWS {
                let range = row * COLUMNS..(row + 1) * COLUMNS;
                let read = READS[step % READS.len()].contains(&(row as i64));
                assert_eq!(before[range.clone()] != after[range], read, "row {row} in step {step}");
            }
        }
    }
}

#[test]
fn steps_are_those_of_strided_gradients_where_all_rows_move() {
    let _one = load(PLUGINS);
    let coupled: Make = |p| Ok(Box::new(Adam::new(p, AdamOptions { lazy: false, ..LAZY })?));
    let plain: Make = |p| Ok(Box::new(Adam::new(p, AdamOptions { lr: 0.1, ..Default::default() })?));
    for make in [PYTORCHS[0].1, ALL[6].1, coupled, plain] {
        let (sparse, dense) = (table(), table());
        train(&sparse, make(vec![sparse.clone()]).unwrap().as_mut(), 0..8, true);
        train(&dense, make(vec![dense.clone()]).unwrap().as_mut(), 0..8, false);
        assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
    }
    // Lazy, with every row in each gradient.
    for make in [ALL[4].1, ALL[5].1] {
        let (sparse, dense) = (table(), table());
        let mut both = [&sparse, &dense].map(|w| make(vec![w.clone()]).unwrap());
        for _ in 0..3 {
            for (w, optimizer) in [&sparse, &dense].into_iter().zip(&mut both) {
                optimizer.zero_grad();
                backward(w, &[5, 0, 3, 1, 2, 4, 0], std::ptr::eq(w, &sparse));
                optimizer.step().unwrap();
            }
            assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
        }
    }
}

#[test]
fn a_run_goes_on_from_its_saved_state() {
    let _one = load(PLUGINS);
    for (name, make) in ALL {
        let (whole, first, second) = (table(), table(), table());
        train(&whole, make(vec![whole.clone()]).unwrap().as_mut(), 0..8, true);
        let mut optimizer = make(vec![first.clone()]).unwrap();
        train(&first, optimizer.as_mut(), 0..5, true);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optimizer.safetensors");
        keyway::io::safetensors::save(&path, &optimizer.state_dict().unwrap()).unwrap();
        let off = keyway::autograd::no_grad();
        second.copy_(&first).unwrap();
        drop(off);
        let mut resumed = make(vec![second.clone()]).unwrap();
        resumed.set_learning_rates(&[7.0]).unwrap();
        let text = resumed.set_learning_rates(&[-7.0]).unwrap_err().to_string();
        assert!(text.contains("lr"), "{text}");
        resumed.load_state_dict(&keyway::io::safetensors::load(&path).unwrap()).unwrap();
        train(&second, resumed.as_mut(), 5..8, true);
        assert_eq!(f64s(&second), f64s(&whole), "{name}");
    }
}

#[test]
fn gradients_of_any_number_of_sparse_dimensions() {
    let _one = load(PLUGINS);
    for (name, make) in ALL {
        for sparse_dim in 0..=2 {
            let (sparse, dense) = (table(), table());
            let grad = dense.detach().square().unwrap();
            sparse.set_grad(grad.to_sparse_with(sparse_dim).unwrap()).unwrap();
            dense.set_grad(grad.to_sparse_with(1).unwrap()).unwrap();
            for w in [&sparse, &dense] {
                make(vec![w.clone()]).unwrap().step().unwrap();
            }
            assert_close(&f64s(&sparse), &f64s(&dense), 1e-14);
            assert_ne!(f64s(&sparse), f64s(&table()), "{name}");
        }
        // No row: the step counts, and lazy state is unchanged.
        let w = table();
        let mut optimizer = make(vec![w.clone()]).unwrap();
        optimizer.step().unwrap();
        backward(&w, &[], true);
        optimizer.step().unwrap();
        assert_eq!(f64s(&w) == f64s(&table()), name != "AdamW", "{name}");
        assert_eq!(f64s(&optimizer.state_dict().unwrap()["state.0.step"]), [1.0], "{name}");
    }
}

#[test]
fn what_does_not_go_is_named_and_changes_nothing() {
    let _one = load(PLUGINS);
    let (first, second) = (table(), table());
    let both = || vec![first.clone(), second.clone()];
    backward(&first, READS[0], true);
    backward(&second, READS[0], false);
    let mut optimizer = SparseAdam::new(both(), SparseAdamOptions::default()).unwrap();
    let text = message(optimizer.step());
    assert!(text.contains("gradient of parameter 1 to be sparse") && text.contains("`AdamW`"), "{text}");
    let options = AdagradOptions { weight_decay: 0.5, ..Default::default() };
    let text = message(Adagrad::new(both(), options).unwrap().step());
    assert!(text.contains("`weight_decay`") && text.contains("touches all rows"), "{text}");
    assert_eq!(f64s(&first), f64s(&table()));
    assert!(optimizer.state_dict().unwrap().keys().all(|name| name.starts_with("group.")));
    let wrong = SparseAdamOptions { beta1: 1.0, ..Default::default() };
    assert!(message(SparseAdam::new(both(), wrong)).contains("`beta1`"));
    let wrong = AdagradOptions { lr_decay: -1.0, ..Default::default() };
    assert!(message(Adagrad::new(both(), wrong)).contains("`lr_decay`"));
}

#[test]
fn the_memory_of_a_step_follows_its_rows() {
    let _one = load(PLUGINS);
    let rows = 50_000;
    let values = Tensor::zeros([rows, 16]).unwrap();
    let sgd: Make = |p| Ok(Box::new(Sgd::new(p, SgdOptions::default())?));
    let steps = ALL[..6].iter().copied().chain([("SGD", sgd)]);
    for (name, make) in steps {
        let w = values.copy().unwrap().requires_grad_(true).unwrap();
        let mut optimizer = make(vec![w.clone()]).unwrap();
        for step in 0..2 {
            reset_peak(Device::CPU).unwrap();
            let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
            optimizer.zero_grad();
            backward(&w, &[7, 49_999, 7], true);
            optimizer.step().unwrap();
            let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
            assert!(step == 0 || most < 1 << 16, "{name}: {most} bytes for 3 rows of {rows}");
        }
    }
}

/// A step by the formulas in f64, from what was kept in a half: the parameter, the first and the second memory.
fn by_formula(name: &str, [p, m, v]: [f64; 3], g: f64) -> [f64; 3] {
    match name {
        "Adagrad" => [p - 0.1 * g / ((v + g * g).sqrt() + 1e-10), 0.0, v + g * g],
        _ => {
            let o = LAZY;
            let decay = if name == "SparseAdam" { 0.0 } else { o.weight_decay };
            let (own, g) = match name {
                "lazy AdamW" => (p * (1.0 - o.lr * decay), g),
                _ => (p, g + decay * p),
            };
            let (m, v) = (o.beta1 * m + (1.0 - o.beta1) * g, o.beta2 * v + (1.0 - o.beta2) * g * g);
            let (c1, root) = (1.0 - o.beta1, (1.0 - o.beta2).sqrt());
            // At the point where SparseAdam adds `eps`, the root is not yet bias-corrected.
            let eps = if name == "SparseAdam" { o.eps } else { o.eps * root };
            [own - o.lr * root / c1 * m / (v.sqrt() + eps), m, v]
        }
    }
}

/// In f16 the usual `eps` is 0, and so is the square of a small gradient.
#[test]
fn halves_step_as_in_f32() {
    let _one = load(PLUGINS);
    let grads: Vec<f64> = (0..ROWS * COLUMNS).map(|i| [0.0, 2e-4, -3e-3, 0.5][i % 4]).collect();
    let names = [(ALL[0], "Adagrad"), (ALL[2], "SparseAdam"), (ALL[4], "lazy AdamW"), (ALL[5], "lazy Adam")];
    for (dtype, eps) in [(DType::F16, 1.0 / 1024.0), (DType::BF16, 1.0 / 128.0)] {
        for ((_, make), name) in names {
            for sparse_dim in 0..=3 {
                if sparse_dim == 3 && name != "Adagrad" {
                    continue;
                }
                let w = table().detach().to_dtype(dtype).unwrap().requires_grad_(true).unwrap();
                let before = f64s(&w);
                let grad = Tensor::from_vec(grads.clone(), w.shape()).unwrap().to_dtype(dtype).unwrap();
                let exact = f64s(&grad);
                // Three stands for a strided gradient.
                w.set_grad(if sparse_dim == 3 { grad } else { grad.to_sparse_with(sparse_dim).unwrap() })
                    .unwrap();
                let mut optimizer = make(vec![w.clone()]).unwrap();
                optimizer.step().unwrap();
                let state = optimizer.state_dict().unwrap();
                let kept = |names: [&str; 2]| {
                    let found = names.into_iter().find_map(|n| state.get(&format!("state.0.{n}")));
                    found.map_or(vec![0.0; before.len()], f64s)
                };
                let after = [f64s(&w), kept(["exp_avg", ""]), kept(["exp_avg_sq", "sum"])];
                for i in 0..before.len() {
                    let stored = sparse_dim != 2 || exact[i] != 0.0;
                    let expected = if stored {
                        by_formula(name, [before[i], 0.0, 0.0], exact[i])
                    } else {
                        [before[i], 0.0, 0.0]
                    };
                    for (got, expected) in after.iter().map(|t| t[i]).zip(expected) {
                        let near = (got - expected).abs() <= 0.6 * eps * expected.abs() + 6e-8;
                        assert!(near, "{name} {dtype} {sparse_dim} at {i}: {got} for {expected}");
                    }
                }
            }
        }
    }
}
