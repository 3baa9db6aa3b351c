//! A step of an embedding with a sparse gradient: the rows are read, the backward pass computes their gradient, the optimizer
//! updates them. `benches/sparse/beside_pytorch.py` compares the cases with PyTorch. Also ops on COO matrices, which
//! `benches/sparse/beside_scipy.py` compares with SciPy and PyTorch.

use criterion::Criterion;
use keyway::autograd::{BackwardOptions, grad};
use keyway::optim::{AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
use keyway::{DType, Device, Result, Tensor};
use keyway_benches::{case, named, wanted};

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
    if wanted("sparse", "") {
        matrices(c).expect("a backend of sparse tensors");
    }
}

/// Rows and columns of the matrices, and their entries.
const SIDE: usize = 10_000;
const ENTRIES: usize = 1_000_000;

/// A COO matrix of `distinct` random coordinates, each with `times` duplicates, in random order.
fn matrix(distinct: usize, times: i64) -> Result<Tensor> {
    let cpu = Device::CPU;
    let places =
        Tensor::randint_with(0, (SIDE * SIDE) as i64, [distinct], (DType::I64, cpu))?.repeat([times])?;
    let places = places.index_select(0, &Tensor::randperm_with(places.elem_count(), cpu)?)?;
    let (row, column) = (places.floor_divide(SIDE as i64)?, places.remainder(SIDE as i64)?);
    let values = Tensor::randn_with(places.shape(), cpu)?;
    Tensor::sparse_coo(&Tensor::stack(&[&row, &column], 0)?, &values, [SIDE, SIDE])
}

/// Ops on COO matrices, each with its result in new memory.
fn matrices(c: &mut Criterion) -> Result<()> {
    let names = [
        "coalesce",
        "softmax",
        "add",
        "mm_sparse",
        "csr_mm_64",
        "mm_64",
        "unsorted_mm_64",
        "dense_grad_64",
        "values_grad_64",
    ]
    .map(|op| format!("sparse.{op}"));
    if !names.iter().any(|name| named(name)) {
        return Ok(());
    }
    let [coalesce, softmax, add, mm_sparse, of_rows, mm, unsorted, of_dense, of_values] = &names;
    let doubled = matrix(ENTRIES / 2, 2)?;
    let (a, b) = (matrix(ENTRIES, 1)?, matrix(ENTRIES, 1)?.coalesce()?);
    let sorted = a.coalesce()?;
    let few = [matrix(ENTRIES / 10, 1)?.coalesce()?, matrix(ENTRIES / 10, 1)?.coalesce()?];
    let dense = Tensor::randn([SIDE, 64])?;
    case(c, coalesce, "step", 1.0, || doubled.coalesce().expect("memory"));
    case(c, softmax, "step", 1.0, || sorted.softmax(1).expect("memory"));
    case(c, add, "step", 1.0, || sorted.add(&b).expect("memory"));
    case(c, mm_sparse, "step", 1.0, || few[0].mm(&few[1]).expect("memory"));
    let rows = sorted.to_sparse_csr()?;
    case(c, of_rows, "step", 1.0, || rows.mm(&dense).expect("memory"));
    case(c, mm, "step", 1.0, || sorted.mm(&dense).expect("memory"));
    case(c, unsorted, "step", 1.0, || a.mm(&dense).expect("memory"));
    let (leaf, values) = (dense.requires_grad_(true)?, sorted.values()?.requires_grad_(true)?);
    let given = Tensor::randn([SIDE, 64])?;
    let back = |of: &Tensor, product: &Tensor| {
        let options = BackwardOptions { retain_graph: true, ..BackwardOptions::from(&given) };
        grad(std::slice::from_ref(product), std::slice::from_ref(of), options).expect("backward")
    };
    let product = sorted.mm(&leaf)?;
    case(c, of_dense, "step", 1.0, || back(&leaf, &product));
    let product =
        Tensor::sparse_coo(&sorted.indices()?, &values, [SIDE, SIDE])?.coalesce()?.mm(&leaf.detach())?;
    case(c, of_values, "step", 1.0, || back(&values, &product));
    Ok(())
}

fn embedding(c: &mut Criterion, size: &str, rows: usize) {
    let table = || {
        let zeros = Tensor::zeros([rows, COLUMNS]).expect("memory");
        zeros.requires_grad_(true).expect("a float")
    };
    let read: Vec<Tensor> =
        (0..STEPS).map(|_| Tensor::randint(0, rows as i64, [READ]).expect("memory")).collect();
    let grad = Tensor::rand([READ, COLUMNS]).expect("memory");
    let mut nth = 0;
    let mut step = |table: &Tensor, optimizer: &mut dyn Optimizer| {
        nth += 1;
        optimizer.zero_grad();
        let made = table.embedding_sparse(&read[nth % STEPS]).expect("forward");
        let options = BackwardOptions { gradients: Some(vec![grad.clone()]), ..BackwardOptions::default() };
        made.backward_with(options).expect("backward");
        optimizer.step().expect("step");
    };
    let name = format!("sparse.embedding_sgd_{size}");
    if named(&name) {
        let w = table();
        let mut sgd = Sgd::new(vec![w.clone()], SgdOptions::default()).expect("sgd");
        case(c, &name, "step", 1.0, || step(&w, &mut sgd));
    }
    let name = format!("sparse.embedding_adam_{size}");
    if named(&name) {
        let w = table();
        let options = AdamWOptions { lazy: true, ..AdamWOptions::default() };
        let mut adam = AdamW::new(vec![w.clone()], options).expect("adam");
        case(c, &name, "step", 1.0, || step(&w, &mut adam));
    }
}
