//! COO tensors on the stand-in, at sizes that the suite's quick cases do not have: entries that are sorted by radix sort,
//! rows of many entries. `keyway-sparse` on the CPU computes the expected values and coordinates, and each result is
//! bit-identical every time, for any order of a kernel's threads.

mod support;

use keyway::{DType, Device, Tensor, runtime};
use support::{built, cuda, load, message, run, stand_in};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("alone") => alone(),
        Some("fallback") => fallback(),
        Some("kernels") => {
            let paths = ["keyway_backend_cpu", "keyway_backend_cuda", "keyway_backend_sparse"].map(built);
            let loaded = runtime::load_backends(&paths).unwrap();
            assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
            for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32] {
                same("conversions", dtype, conversions);
                same("sums", dtype, sums);
                same("products", dtype, products);
            }
            same("gradients", DType::F32, gradients);
            errors();
        }
        Some(other) => panic!("there is no scenario {other}"),
    }
}

#[test]
fn coordinates_are_as_on_the_cpu_in_any_order_of_threads() {
    let Some(driver) = stand_in() else { return };
    for seed in ["3", "4", "5"] {
        run("kernels", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

#[test]
fn what_no_kernel_of_the_device_serves_falls_back_whole() {
    let Some(driver) = stand_in() else { return };
    run("fallback", &driver, &[]);
}

/// Functions of coordinates that the CUDA backend has no kernel for, on the CPU by the device's policy.
fn fallback() {
    let paths = ["keyway_backend_cpu", "keyway_backend_cuda", "keyway_backend_sparse"].map(built);
    let loaded = runtime::load_backends(&paths).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    keyway::backend::set_device_fallback("cuda", "cpu:allow").unwrap();
    let (near, far) = (
        coordinates(Device::CPU, DType::F32, &[6, 5], 2, 12).coalesce().unwrap(),
        coordinates(cuda(0), DType::F32, &[6, 5], 2, 12).coalesce().unwrap(),
    );
    let rows = Tensor::new([4i64, 0, 4]).unwrap();
    type Run<'a> = &'a dyn Fn(&Tensor) -> keyway::Result<Tensor>;
    let runs: [(&str, Run<'_>); 3] = [
        ("softmax", &|t| t.softmax(1)),
        ("log_softmax", &|t| t.log_softmax(1)),
        ("index_select", &|t| t.index_select(0, &rows.to_device(t.device())?)),
    ];
    for (name, run) in runs {
        let made = run(&far).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((made.device(), made.layout()), (cuda(0), far.layout()), "{name}");
        assert_eq!(parts(&made), parts(&run(&near).unwrap()), "{name}");
    }
    let ledger = keyway::backend::fallbacks();
    for (name, moves) in [("softmax", 2), ("log_softmax", 2), ("index_select", 3)] {
        let line = ledger.iter().find(|line| line.op == name).unwrap();
        assert_eq!((line.calls, line.moves), (1, moves), "{line:?}");
    }
}

#[test]
fn coordinates_need_no_library_for_the_cpu() {
    let Some(driver) = stand_in() else { return };
    run("alone", &driver, &[]);
}

/// An integer for each index of a list.
fn scattered(at: usize, n: usize) -> usize {
    ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % n
}

/// Small integers, whose sums and products are exact in every dtype.
fn values(device: Device, dtype: DType, sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let all = (0..count).map(|at| scattered(at + 7, 5) as f32 - 2.0).collect();
    Tensor::from_vec(all, sizes).unwrap().to_dtype(dtype).unwrap().to_device(device).unwrap()
}

/// Unordered entries with many duplicates.
fn coordinates(device: Device, dtype: DType, sizes: &[usize], sparse_dim: usize, nnz: usize) -> Tensor {
    let index = (0..sparse_dim * nnz).map(|at| scattered(at, sizes[at / nnz]) as i64).collect();
    let index = Tensor::from_vec(index, [sparse_dim, nnz]).unwrap().to_device(device).unwrap();
    let shape: Vec<usize> = std::iter::once(nnz).chain(sizes[sparse_dim..].iter().copied()).collect();
    Tensor::sparse_coo(&index, &values(device, dtype, &shape), sizes).unwrap()
}

/// The content of a tensor: coordinates and values of a sparse one, otherwise the elements.
fn parts(tensor: &Tensor) -> Vec<(Vec<usize>, Vec<u64>)> {
    let sparse = tensor.layout().name() == "sparse_coo";
    let all = if sparse { tensor.components().unwrap() } else { vec![tensor.clone()] };
    let bits = |part: &Tensor| {
        let wide = part.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
        (part.shape().to_vec(), wide.to_vec::<f64>().unwrap().iter().map(|x| x.to_bits()).collect())
    };
    all.iter().map(bits).collect()
}

/// The result of `make` on a device equals that on the CPU, and is the same twice.
#[track_caller]
fn same(what: &str, dtype: DType, make: fn(Device, DType) -> Vec<Tensor>) {
    let (own, again, expected) = (make(cuda(0), dtype), make(cuda(0), dtype), make(Device::CPU, dtype));
    assert_eq!(own.len(), expected.len());
    for (k, own) in own.iter().enumerate() {
        assert_eq!(own.device(), cuda(0), "{what} {dtype} {k}");
        assert_eq!(own.layout(), expected[k].layout(), "{what} {dtype} {k}");
        assert_eq!(parts(own), parts(&expected[k]), "{what} {dtype} {k}");
        assert_eq!(parts(own), parts(&again[k]), "{what} {dtype} {k}, the second time");
    }
}

fn conversions(device: Device, dtype: DType) -> Vec<Tensor> {
    let mut made = Vec::new();
    for (sizes, sparse_dim, nnz) in [
        (&[70usize, 90][..], 2, 5000),
        (&[300, 5], 1, 1500),
        (&[4, 5, 6], 3, 40),
        (&[3, 2], 0, 3),
        (&[9], 1, 0),
    ] {
        let a = coordinates(device, dtype, sizes, sparse_dim, nnz);
        let dense = a.to_dense().unwrap();
        made.extend([a.coalesce().unwrap(), dense.to_sparse_with(sparse_dim).unwrap(), dense]);
    }
    // A matrix whose elements are not contiguous.
    let transposed = coordinates(device, dtype, &[30, 40], 2, 200).to_dense().unwrap().t().unwrap();
    let mask = coordinates(device, dtype, &[40, 30], 2, 300);
    made.extend([transposed.to_sparse_with(2).unwrap(), transposed.sparse_mask(&mask).unwrap()]);
    made.push(coordinates(device, dtype, &[40, 30], 2, 100).sparse_mask(&mask).unwrap());
    made.push(mask.to_dtype(DType::F64).unwrap());
    made.push(coordinates(device, dtype, &[4, 5, 6], 3, 40).permute([2, 0, 1]).unwrap());
    made
}

fn sums(device: Device, dtype: DType) -> Vec<Tensor> {
    let (a, b) = (
        coordinates(device, dtype, &[60, 70], 2, 2000),
        coordinates(device, dtype, &[60, 70], 2, 1500).mul(3).unwrap(),
    );
    let dense = values(device, dtype, &[60, 70]);
    let column = values(device, dtype, &[60, 1]);
    let rows = coordinates(device, dtype, &[200, 4], 1, 700);
    vec![
        a.add(&b).unwrap(),
        a.sub(&b).unwrap(),
        a.add_with(&b, 2).unwrap(),
        a.add(&dense).unwrap(),
        dense.sub(&a).unwrap(),
        a.mul(&dense).unwrap(),
        column.mul(&a).unwrap(),
        a.mul(&b).unwrap(),
        a.neg().unwrap(),
        a.abs().unwrap(),
        a.sum_all().unwrap(),
        a.sum(0).unwrap(),
        a.sum_keepdim(1).unwrap(),
        rows.sum(1).unwrap(),
        rows.sum(0).unwrap(),
        rows.add(&rows.zeros_like().unwrap()).unwrap(),
    ]
}

fn products(device: Device, dtype: DType) -> Vec<Tensor> {
    let a = coordinates(device, dtype, &[50, 40], 2, 900);
    let right = values(device, dtype, &[40, 9]);
    let left = values(device, dtype, &[40, 7]).t().unwrap();
    let stack = coordinates(device, dtype, &[3, 10, 12], 3, 100);
    vec![
        a.mm(&right).unwrap(),
        a.mm(&values(device, dtype, &[3, 40]).t().unwrap()).unwrap(),
        values(device, dtype, &[6, 50]).mm(&a).unwrap(),
        left.mm(&coordinates(device, dtype, &[40, 11], 2, 90)).unwrap(),
        a.mv(&values(device, dtype, &[40])).unwrap(),
        stack.bmm(&values(device, dtype, &[3, 12, 4])).unwrap(),
        values(device, dtype, &[3, 4, 10]).bmm(&stack).unwrap(),
        a.mm(&coordinates(device, dtype, &[40, 30], 2, 300)).unwrap(),
        values(device, dtype, &[50, 9]).addmm_with(&a, &right, 2, 3).unwrap(),
        a.sampled_mm(&values(device, dtype, &[50, 4]), &values(device, dtype, &[4, 40])).unwrap(),
    ]
}

/// The gradients of a table whose rows are read, twice, and of both operands of a product.
fn gradients(device: Device, dtype: DType) -> Vec<Tensor> {
    let table = values(device, dtype, &[30, 4]).requires_grad_(true).unwrap();
    let at = (0..600).map(|at| scattered(at, 30) as i64).collect();
    let at = Tensor::from_vec(at, [20, 30]).unwrap().to_device(device).unwrap();
    for _ in 0..2 {
        let rows = table.embedding_sparse_with(&at, Some(3)).unwrap();
        rows.mul(&values(device, dtype, &[20, 30, 4])).unwrap().sum_all().unwrap().backward().unwrap();
    }
    let a = coordinates(device, dtype, &[50, 40], 2, 900).coalesce().unwrap().requires_grad_(true).unwrap();
    let right = values(device, dtype, &[40, 9]).requires_grad_(true).unwrap();
    let weights = values(device, dtype, &[50, 9]);
    a.mm(&right).unwrap().mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
    vec![table.grad().unwrap().coalesce().unwrap(), a.grad().unwrap(), right.grad().unwrap()]
}

/// Invalid calls are reported with their cause, and no op converts to strided silently.
fn errors() {
    let a = coordinates(cuda(0), DType::F32, &[5, 6], 2, 8);
    let index = Tensor::new([[0i64, 5], [0, 6]]).unwrap().to_device(cuda(0)).unwrap();
    let said = message(Tensor::sparse_coo(&index, &values(cuda(0), DType::F32, &[2]), (6, 6)));
    assert!(said.contains("indices from 0 and below 6 in dimension 1") && said.contains('6'), "{said}");
    let falling = Tensor::new([[3i64, 1]]).unwrap().to_device(cuda(0)).unwrap();
    let parts = [falling, values(cuda(0), DType::F32, &[2])];
    let said = message(Tensor::from_components(a.layout(), &[4], DType::F32, &parts, &[1]));
    assert!(said.contains("row-major order without duplicates"), "{said}");
    assert!(message(a.exp()).contains("to_dense()"), "{}", message(a.exp()));
    // A component that was changed directly, not through the tensor.
    let index = Tensor::new([[0i64, 1]]).unwrap().to_device(cuda(0)).unwrap();
    let changed = Tensor::sparse_coo(&index, &values(cuda(0), DType::F32, &[2]), 3).unwrap();
    index.copy_(&Tensor::new([[0i64, 7]]).unwrap()).unwrap();
    assert!(
        message(changed.to_dense()).contains("below 3 in dimension 0"),
        "{}",
        message(changed.to_dense())
    );
}

/// Created, computed with and read if no library serves the layout on the CPU, which an op on the CPU reports.
fn alone() {
    load();
    let a = coordinates(cuda(0), DType::F32, &[5, 6], 2, 40);
    // Sums that cancel are stored in one of the results, and dropped in the other.
    let (sums, dense) = (a.coalesce().unwrap(), a.to_dense().unwrap());
    let (sums_count, there) = (sums.nnz().unwrap(), dense.to_sparse_with(2).unwrap());
    assert!(there.nnz().unwrap() < sums_count && sums_count < 40);
    assert_eq!(parts(&there.to_dense().unwrap()), parts(&sums.to_dense().unwrap()));
    let host = a.to_device(Device::CPU).unwrap();
    assert_eq!(parts(&host), parts(&a));
    let said = message(host.coalesce());
    assert!(said.contains("install the backend that brings the layout"), "{said}");
    let table = values(Device::CPU, DType::F32, &[3, 2]);
    let at = Tensor::new([0i64, 2]).unwrap();
    assert!(message(table.embedding_sparse(&at)).contains("embedding_sparse"));
}
