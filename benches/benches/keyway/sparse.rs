//! A step of an embedding with a sparse gradient: the rows are read, the backward pass gives them a gradient, the optimizer
//! moves them. `benches/sparse/beside_pytorch.py` sets the cases beside PyTorch's.

use criterion::Criterion;
use keyway::autograd::BackwardOptions;
use keyway::optim::{AdamOptions, AdamW, Optimizer, Sgd, SgdOptions};
use keyway::{DType, Device, Tensor};
use keyway_benches::{case, wanted};

const COLUMNS: usize = 64;
/// Rows that a step reads, some of them more than once.
const READ: usize = 4096;
/// Steps until the same rows are read again.
const STEPS: usize = 32;

/// The cases. Those of the large table, which takes 8 GB with its moments, run where the command line names their size.
pub fn cases(c: &mut Criterion) {
    let large = std::env::args().any(|argument| argument.contains("1e7"));
    for (size, rows) in [("1e5", 100_000), ("1e7", 10_000_000)] {
        if wanted("sparse", size) && (size == "1e5" || large) {
            embedding(c, size, rows);
        }
    }
}

fn embedding(c: &mut Criterion, size: &str, rows: usize) {
    let table = || {
        let zeros = Tensor::zeros(&[rows, COLUMNS], DType::F32, Device::CPU).expect("memory");
        zeros.set_requires_grad(true).expect("a float")
    };
    let read: Vec<Tensor> = (0..STEPS)
        .map(|_| Tensor::randint(0, rows as i64, &[READ], DType::I64, Device::CPU).expect("memory"))
        .collect();
    let grad = Tensor::rand(&[READ, COLUMNS], DType::F32, Device::CPU).expect("memory");
    let mut nth = 0;
    let mut step = |table: &Tensor, optimizer: &mut dyn Optimizer| {
        nth += 1;
        optimizer.zero_grad();
        let made = table.embedding_sparse(&read[nth % STEPS], None).expect("forward");
        let options = BackwardOptions { gradients: Some(vec![grad.clone()]), ..BackwardOptions::default() };
        made.backward_with(options).expect("backward");
        optimizer.step().expect("step");
    };
    let asked =
        |name: &str| std::env::args().skip(1).filter(|a| !a.starts_with('-')).all(|a| name.contains(&a));
    let name = format!("sparse.embedding_sgd_{size}");
    if asked(&name) {
        let w = table();
        let mut sgd = Sgd::new(vec![w.clone()], SgdOptions::default()).expect("sgd");
        case(c, &name, "step", 1.0, || step(&w, &mut sgd));
    }
    let name = format!("sparse.embedding_adam_{size}");
    if asked(&name) {
        let w = table();
        let options = AdamOptions { lazy: true, ..AdamOptions::adamw() };
        let mut adam = AdamW::new(vec![w.clone()], options).expect("adam");
        case(c, &name, "step", 1.0, || step(&w, &mut adam));
    }
}
