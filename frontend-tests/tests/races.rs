//! Threads that write to the indices, masks and structures that another thread's ops go by: each call sees them before or after
//! a write, never in the middle of one, and none leads beyond a tensor's memory.

mod rehearsal_support;

use keyway::ops::build::build;
use keyway::{DType, Layout, Result, Tensor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const N: i64 = 4096;

/// Runs `call` again and again while another thread changes `integers` to and fro: between what they hold and each of `others`.
fn while_written(integers: &Tensor, others: &[i64], time: Duration, mut call: impl FnMut()) {
    let own = integers.copy().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for &other in others {
                    integers.fill_(other).unwrap();
                    integers.copy_(&own).unwrap();
                }
            }
        });
        let _stop = Stop(&stop);
        let begin = Instant::now();
        while begin.elapsed() < time {
            call();
        }
    });
}

/// Ends the other thread's work when this thread's is over, however it ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a call's result is one of those that it has alone, before and after each write.
fn one_of(what: &str, got: &Result<Vec<f64>>, alone: &[Result<Vec<f64>>]) {
    let text = |result: &Result<Vec<f64>>| match result {
        Ok(values) => format!("{} values, {:?}..", values.len(), &values[..values.len().min(4)]),
        Err(error) => error.to_string(),
    };
    let same = |expected: &Result<Vec<f64>>| match (got, expected) {
        (Ok(got), Ok(expected)) => got == expected,
        (Err(got), Err(expected)) => got.to_string() == expected.to_string(),
        _ => false,
    };
    let all: Vec<String> = alone.iter().map(text).collect();
    assert!(alone.iter().any(same), "{what}: {} is none of {all:?}", text(got));
}

/// An op with integer arguments, and alternative values of these.
type Case = (&'static str, Tensor, Vec<i64>, Box<dyn Fn(&Tensor) -> Result<Tensor>>);

fn cases() -> Result<Vec<Case>> {
    let source = Tensor::arange(0, N)?.to_dtype(DType::F32)?;
    let index = || Tensor::arange(0, N)?.to_dtype(DType::I64);
    let mask = || Tensor::arange(0, N)?.to_dtype(DType::I64)?.lt(N / 2);
    let far = || vec![1 << 44, -(1 << 50), 0];
    let of = |f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        let source = source.clone();
        Box::new(move |integers: &Tensor| f(&source, integers)) as Box<dyn Fn(&Tensor) -> Result<Tensor>>
    };
    Ok(vec![
        ("index_select", index()?, far(), of(|x, i| x.index_select(0, i))),
        ("gather", index()?, far(), of(|x, i| x.gather(0, i))),
        ("take", index()?, far(), of(|x, i| x.take(i))),
        ("i", index()?, far(), of(|x, i| x.i(i))),
        ("embedding", index()?, far(), of(|x, i| x.unsqueeze(1)?.embedding(i))),
        ("embedding_bag", index()?, far(), of(|x, i| x.unsqueeze(1)?.embedding_bag(&i.view((64, -1))?))),
        ("scatter", index()?, far(), of(|x, i| x.scatter(0, i, x))),
        ("scatter_add", index()?, far(), of(|x, i| x.scatter_add(0, i, x))),
        ("index_add", index()?, far(), of(|x, i| x.index_add(0, i, x))),
        ("index_copy", index()?, far(), of(|x, i| x.index_copy(0, i, x))),
        ("index_put", index()?, far(), of(|x, i| x.index_put(&[Some(i)], x))),
        ("one_hot", index()?, vec![1 << 44, -1, 3], of(|_, i| i.i(..64)?.one_hot(N))),
        ("bincount", index()?, vec![-1, 5, 9000], of(|_, i| i.bincount())),
        ("nll_loss", index()?, far(), of(|x, i| x.unsqueeze(1)?.expand((N, 2))?.nll_loss(&i.remainder(2)?))),
        ("masked_select", mask()?, vec![0, 1], of(|x, m| x.masked_select(m))),
        ("masked_scatter", mask()?, vec![0, 1], of(|x, m| x.masked_scatter(m, x))),
        ("nonzero", mask()?, vec![0, 1], of(|_, m| m.nonzero())),
        ("unique", index()?, vec![7, 1 << 44], of(|_, i| i.unique())),
    ])
}

#[test]
fn ops_see_integers_before_or_after_a_write() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    for (what, integers, others, op) in cases()? {
        // Several kernels, each of which may see another state: no result of a whole.
        let of_parts =
            ["nll_loss", "one_hot", "i", "index_put", "bincount", "masked_scatter"].contains(&what);
        let run = || op(&integers).and_then(|made| made.to_vec_f64());
        let own = integers.copy()?;
        let mut alone = vec![run()];
        for &other in &others {
            integers.fill_(other)?;
            alone.push(run());
        }
        integers.copy_(&own)?;
        assert!(alone[0].is_ok(), "{what}: {:?}", alone[0]);
        while_written(&integers, &others, Duration::from_millis(120), || {
            let got = run();
            if !of_parts {
                one_of(what, &got, &alone);
            }
        });
    }
    Ok(())
}

#[test]
fn a_sparse_matrix_is_read_before_or_after_a_write_to_its_structure() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let dense = Tensor::eye(512)?.add(&Tensor::eye(512)?.roll(1, 0)?)?;
    let by = Tensor::ones((512, 4))?;
    for layout in ["sparse_csr", "sparse_coo"] {
        let matrix = dense.to_layout(layout.parse()?)?;
        let product = || matrix.mm(&by).and_then(|made| made.to_vec_f64());
        let strided = || matrix.to_layout(Layout::STRIDED).and_then(|made| made.to_vec_f64());
        for integers in matrix.components()?.into_iter().filter(|c| c.dtype() == DType::I64) {
            let others = [1 << 44, -1, 0];
            let mut alone = vec![(product(), strided())];
            let own = integers.copy()?;
            for other in others {
                integers.fill_(other)?;
                alone.push((product(), strided()));
            }
            integers.copy_(&own)?;
            let (products, rows): (Vec<_>, Vec<_>) = alone.into_iter().unzip();
            assert!(products[0].is_ok() && rows[0].is_ok(), "{layout}");
            while_written(&integers, &others, Duration::from_millis(150), || {
                one_of(layout, &product(), &products);
                one_of(layout, &strided(), &rows);
            });
        }
    }
    Ok(())
}

#[test]
fn no_op_is_led_astray_by_integers_that_change() {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let mut raced = 0;
    for def in keyway::ops::all() {
        let dtype = if def.dtypes.has(DType::F32) { DType::F32 } else { DType::I64 };
        for (seed, sample) in (def.samples)().iter().enumerate() {
            let Ok(built) = build(&sample.args, dtype, seed as u64) else { continue };
            let integers = built.tensors.iter().find(|t| {
                t.layout() == Layout::STRIDED
                    && !t.dtype().is_float()
                    && t.elem_count() > 0
                    && t.copy_(t).is_ok()
            });
            let Some(integers) = integers else { continue };
            raced += 1;
            let others: &[i64] = match integers.dtype() {
                DType::I64 => &[1 << 44, -(1 << 44), 0],
                DType::I32 => &[1 << 30, -1, 0],
                _ => &[0, 1],
            };
            while_written(integers, others, Duration::from_millis(4), || {
                if let Err(error) = built.call(def, &built.tensors) {
                    assert!(!error.to_string().contains("panic"), "{}: {error}", def.name());
                }
            });
        }
    }
    assert!(raced > 100, "{raced} samples");
}

#[test]
fn floats_may_change_while_they_are_counted() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let floats = Tensor::arange(0, 1 << 15)?.to_dtype(DType::F32)?.remainder(3.0)?;
    let (square, deep) = (floats.view((128, -1))?, floats.view((8, 8, 8, 8, -1))?);
    while_written(&floats, &[0, 1], Duration::from_millis(300), || {
        for x in [&floats, &square, &deep] {
            assert!(x.nonzero().unwrap().elem_count() <= x.elem_count() * x.rank());
            assert!(x.unique().unwrap().elem_count() <= x.elem_count());
            x.to_layout("sparse_coo".parse().unwrap()).unwrap();
        }
    });
    Ok(())
}

#[test]
fn tensors_of_one_storage_and_two_kinds_are_read_as_a_copy() -> Result<()> {
    use keyway_dispatcher::tensor::TensorImpl;
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let source = Tensor::arange(0, N)?.to_dtype(DType::F32)?;
    let floats = Tensor::zeros_with(N, DType::F64)?;
    let own = floats.storage()?.clone();
    let integers = Tensor::from_ref(TensorImpl::strided(own, 0, &[N as usize], &[1], DType::I64)?);
    assert!(integers.shares_storage(&floats));
    let column =
        Tensor::from_ref(TensorImpl::strided(floats.storage()?.clone(), 0, &[1, 2], &[2, 1], DType::I64)?);
    let sparse = Tensor::sparse_coo(&column, &Tensor::new([1.0f32, 2.0])?, [4])?;
    assert_eq!(sparse.to_dense()?.to_vec::<f32>()?, [3.0, 0.0, 0.0, 0.0]);
    assert_eq!(sparse.mul(2.0)?.to_dense()?.to_vec::<f32>()?, [6.0, 0.0, 0.0, 0.0]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                floats.fill_(1e300).unwrap();
                floats.fill_(0.0).unwrap();
            }
        });
        let _stop = Stop(&stop);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(200) {
            if let Ok(made) = source.index_select(0, &integers) {
                assert_eq!(made.sum_all().unwrap().item::<f32>().unwrap(), 0.0);
            }
        }
    });
    Ok(())
}
