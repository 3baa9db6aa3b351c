//! Sparse tensors that are changed in place, split, multiplied as vectors; and the error messages for damaged ones.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::autograd::no_grad;
use keyway::io::safetensors;
use keyway::nn::StateDict;
use keyway::{DType, Tensor};

/// Two entries at (1, 2), not in order.
const PLACES: [i64; 10] = [1, 0, 2, 1, 2, 2, 3, 0, 2, 1];

fn matrix(values: &Tensor) -> Tensor {
    Tensor::sparse_coo(&ints(&PLACES, &[2, 5]), values, [3, 4]).unwrap()
}

fn numbers() -> Tensor {
    matrix(&floats(&[1.0, -2.0, 3.0, -4.0, 5.0], &[5]))
}

/// Each op in place on COO, coalesced COO and CSR tensors; linear ones also with duplicates.
#[test]
fn numbers_are_changed_where_they_stand() {
    let _one = load(PLUGINS);
    type Op = fn(&Tensor) -> keyway::Result<Tensor>;
    let linear: [(&str, Op); 4] =
        [("mul", |x| x.mul_(2.0)), ("div", |x| x.div_(-4.0)), ("neg", |x| x.neg_()), ("zero", |x| x.zero_())];
    let others: [(&str, Op); 4] = [
        ("abs", |x| x.abs_()),
        ("relu", |x| x.relu_()),
        ("square", |x| x.square_()),
        ("leaky_relu", |x| x.leaky_relu_with_(0.5)),
    ];
    for (name, op) in linear.iter().chain(&others) {
        let coalesced = numbers().coalesce().unwrap();
        for x in [coalesced.copy().unwrap(), coalesced.to_sparse_csr().unwrap()] {
            let (dense, before, values) = (x.to_dense().unwrap(), x.version(), x.values().unwrap());
            let made = op(&x).unwrap();
            op(&dense).unwrap();
            assert_eq!(f64s(&x), f64s(&dense), "{name}");
            assert_eq!((f64s(&made), made.layout()), (f64s(&dense), x.layout()), "{name}");
            assert!(x.version() > before, "{name}: no change was noted");
            assert_eq!(values.to_vec_f64().unwrap(), x.values().unwrap().to_vec_f64().unwrap(), "{name}");
        }
    }
    for (name, op) in linear {
        let (x, dense) = (numbers(), numbers().to_dense().unwrap());
        op(&x).unwrap();
        op(&dense).unwrap();
        assert_eq!((f64s(&x), x.nnz().unwrap()), (f64s(&dense), 5), "{name}");
    }
    for (name, op) in others {
        let x = numbers();
        assert!(message(op(&x)).contains("`coalesce()` both tensors first"), "{name}");
        assert_eq!(f64s(&x), f64s(&numbers()), "{name}: refused, and yet changed");
    }
    assert!(message(numbers().fill_(1.0)).contains("to_dense()"));
}

#[test]
fn what_is_added_stands_where_something_is_stored() {
    let _one = load(PLUGINS);
    let whole = numbers().coalesce().unwrap();
    let part =
        Tensor::sparse_coo(&ints(&[1, 2, 2, 1], &[2, 2]), &floats(&[10.0, 20.0], &[2]), [3, 4]).unwrap();
    for (alpha, x) in [(1.0, whole.copy().unwrap()), (-0.5, whole.copy().unwrap())] {
        let dense = x.to_dense().unwrap();
        x.add_with_(&part, alpha).unwrap();
        dense.add_with_(&part, alpha).unwrap();
        assert_eq!(f64s(&x), f64s(&dense));
    }
    let x = part.coalesce().unwrap();
    assert!(message(x.add_(&whole)).contains("has other coordinates"));
    assert!(message(x.add_(&whole.to_dense().unwrap())).contains("another layout"));
    assert_eq!(f64s(&x), f64s(&part));
    let ints = whole.to_dtype(DType::I64).unwrap();
    ints.mul_(3).unwrap();
    assert_eq!(f64s(&ints), f64s(&whole).iter().map(|v| v * 3.0).collect::<Vec<_>>());
    assert!(ints.mul_(0.5).is_err());
}

#[test]
fn gradients_see_changes_in_place() {
    let _one = load(PLUGINS);
    let v = leaf(&[1.0, -2.0, 3.0, -4.0, 5.0], &[5]);
    let x = matrix(&v).mul(2.0).unwrap();
    assert!(message(x.mul_(2.0)).contains("where a gradient is wanted"));
    let made = x.mul(&x).unwrap().sum_all().unwrap();
    {
        let _off = no_grad();
        x.mul_(2.0).unwrap();
    }
    // The values that the product saved were overwritten, and the change is in no graph.
    assert!(message(made.backward()).contains("in place"));
    assert!(message(x.mul(3.0)).contains("in place"));
    assert!(message(matrix(&v).requires_grad_(true).and_then(|t| t.neg_())).contains("in place"));
}

#[test]
fn products_of_sparse_vectors_have_derivatives() {
    let _one = load(PLUGINS);
    let vector = |v: &Tensor| Tensor::sparse_coo(&ints(&[2, 0, 2], &[1, 3]), v, [4]);
    let other = |v: &Tensor| Tensor::sparse_coo(&ints(&[0, 3, 2], &[1, 3]), v, [4]);
    let of = |v: &Tensor| Tensor::sparse_coo(&ints(&PLACES, &[2, 5]), v, [3, 4]);
    let (v, w) = (leaf(&[1.0, 2.0, 3.0], &[3]), leaf(&[-1.0, 0.5, 2.0], &[3]));
    let (d, m) = (leaf(&[0.5, 1.5, -2.5, 1.0], &[4]), leaf(&[1.0, -2.0, 0.5, 3.0, 1.5], &[5]));
    let dense = leaf(&[0.5, 1.5, -2.5, 1.0, 2.0, -1.0, 0.25, 3.0, 1.0, -1.0, 2.0, 0.5], &[3, 4]);
    let cases: [(&str, &Function<'_>, [&Tensor; 2]); 10] = [
        ("dot sparse, strided", &|x| Ok(vec![vector(&x[0])?.dot(&x[1])?]), [&v, &d]),
        ("dot sparse, sparse", &|x| Ok(vec![vector(&x[0])?.dot(&other(&x[1])?)?]), [&v, &w]),
        ("mv strided, sparse", &|x| Ok(vec![x[1].mv(&vector(&x[0])?)?]), [&v, &dense]),
        ("mv sparse, sparse", &|x| Ok(vec![of(&x[1])?.mv(&vector(&x[0])?)?.to_dense()?]), [&v, &m]),
        ("matmul of vectors", &|x| Ok(vec![vector(&x[0])?.matmul(&other(&x[1])?)?]), [&v, &w]),
        ("matmul vector, strided", &|x| Ok(vec![vector(&x[0])?.matmul(&x[1].t()?)?]), [&v, &dense]),
        (
            "matmul vector, sparse",
            &|x| Ok(vec![vector(&x[0])?.matmul(&of(&x[1])?.t()?)?.to_dense()?]),
            [&v, &m],
        ),
        ("matmul strided, vector", &|x| Ok(vec![x[1].matmul(&vector(&x[0])?)?]), [&v, &dense]),
        (
            "matmul batch, vector",
            &|x| Ok(vec![x[1].reshape([3, 1, 4])?.matmul(&vector(&x[0])?)?]),
            [&v, &dense],
        ),
        ("outer sparse, strided", &|x| Ok(vec![vector(&x[0])?.outer(&x[1])?.to_dense()?]), [&v, &d]),
    ];
    for (name, function, inputs) in cases {
        check(name, function, &inputs.map(Tensor::clone));
    }
    check(
        "leaky_relu",
        &|x| Ok(vec![of(&x[0])?.leaky_relu_with(0.25)?.to_dense()?]),
        std::slice::from_ref(&m),
    );
}

#[test]
fn coordinates_are_split_anew() {
    let _one = load(PLUGINS);
    let hybrid = Tensor::sparse_coo(
        &ints(&[2, 0, 2], &[1, 3]),
        &floats(&[1.0, 2.0, 3.0, 4.0, 0.0, 6.0], &[3, 2]),
        [4, 2],
    );
    let (hybrid, none) = (hybrid.unwrap(), matrix_without_entries());
    for t in [numbers(), numbers().coalesce().unwrap(), hybrid, none, numbers().to_sparse_csr().unwrap()] {
        for dims in 0..=2 {
            let made = t.to_sparse_with(dims).unwrap();
            assert_eq!((made.sparse_dim().unwrap(), f64s(&made)), (dims, f64s(&t)));
            assert!(made.is_coalesced().unwrap());
            let fresh = t.to_dense().unwrap().to_sparse_with(dims).unwrap();
            if fresh.nnz().unwrap() == made.nnz().unwrap() {
                assert_eq!(
                    made.indices().unwrap().to_vec::<i64>().unwrap(),
                    fresh.indices().unwrap().to_vec::<i64>().unwrap()
                );
            }
        }
        assert!(message(t.to_sparse_with(3)).contains("from 0 to 2"));
    }
    let m = leaf(&[1.0, -2.0, 0.5, 3.0, 1.5], &[5]);
    check("fewer", &|x| Ok(vec![matrix(&x[0]).to_sparse_with(1)?.to_dense()?]), std::slice::from_ref(&m));
    let blocks = |x: &Tensor| Tensor::sparse_coo(&ints(&[2, 0, 2], &[1, 3]), &x.reshape([3, 2])?, [4, 2]);
    let six = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[6]);
    check("more", &|x| Ok(vec![blocks(&x[0])?.to_sparse_with(2)?.to_dense()?]), &[six]);
}

fn matrix_without_entries() -> Tensor {
    Tensor::sparse_coo(&ints(&[], &[2, 0]), &floats(&[], &[0]), [3, 4]).unwrap()
}

#[test]
fn the_sum_s_layout_hangs_on_no_factor() {
    let _one = load(PLUGINS);
    let (a, b) = (numbers(), numbers().t().unwrap());
    let dense = Tensor::ones_with([3, 3], (DType::F64, keyway::Device::CPU)).unwrap();
    for beta in [0.0, 1.0] {
        let strided = dense.addmm_with(&a, &b, beta, 1.0).unwrap();
        let sparse = dense.to_sparse_with(2).unwrap().addmm_with(&a, &b, beta, 1.0).unwrap();
        assert!(strided.as_ref().is_strided() && !sparse.as_ref().is_strided());
        assert_eq!(f64s(&strided), f64s(&sparse));
    }
}

#[test]
fn halves_are_rounded_once() {
    let _one = load(PLUGINS);
    // 1 + 0.3 * 1.001 in f16: 0.3 * 1.001 rounded first gives another sum.
    for alpha in [0.3, 0.7, -1.1, 3.3] {
        let values: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i) * 0.037).collect();
        let t =
            Tensor::sparse_coo(&ints(&(0..40).collect::<Vec<_>>(), &[1, 40]), &floats(&values, &[40]), [40]);
        let half = t.unwrap().to_dtype(DType::F16).unwrap();
        let made = half.add_with(&half, alpha).unwrap();
        let strided = half.to_dense().unwrap();
        assert_eq!(f64s(&made), f64s(&strided.add_with(&strided, alpha).unwrap()), "{alpha}");
    }
}

#[test]
fn dropout_is_of_what_is_stored() {
    let _one = load(PLUGINS);
    let x = numbers().coalesce().unwrap();
    let made = x.dropout(0.5, true).unwrap();
    assert_eq!((made.layout(), made.nnz().unwrap()), (x.layout(), 4));
    let pairs = f64s(&made).into_iter().zip(f64s(&x));
    assert!(pairs.into_iter().all(|(made, own)| made == 0.0 || made == 2.0 * own));
}

#[test]
fn too_many_places_are_an_error() {
    let _one = load(PLUGINS);
    let none = Tensor::sparse_coo(&ints(&[], &[3, 0]), &floats(&[], &[0]), [1, 1, 1]).unwrap();
    assert!(
        message(none.expand([1usize << 40, 1 << 40, 1])).contains("at most 9223372036854775807 coordinates")
    );
    let one = Tensor::sparse_coo(&ints(&[0], &[1, 1]), &floats(&[1.0], &[1]), [1]).unwrap();
    assert!(message(one.unsqueeze(0).unwrap().expand([1usize << 40, 1])).contains("out of memory"));
    assert_eq!(none.expand([1usize << 40, 1, 1]).unwrap().nnz().unwrap(), 0);
}

#[test]
fn messages_name_what_was_called() {
    let _one = load(PLUGINS);
    let wrong = Tensor::sparse_coo(&ints(&[7], &[1, 1]), &floats(&[1.0], &[1]), [4]);
    let said = message(wrong);
    assert!(said.starts_with("sparse_coo: argument `indices`") && !said.contains("part"), "{said}");
    let said = message(floats(&[1.0], &[1]).nnz());
    assert!(said.contains("sparse_coo or sparse_csr"), "{said}");
    let said = message(floats(&[0.0; 8], &[4, 2]).embedding_sparse(&ints(&[5], &[1])));
    assert_eq!(said.matches("found by backend").count(), 1, "{said}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.safetensors");
    let state = StateDict::from([("graph".to_string(), numbers())]);
    safetensors::save(&path, &state).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // An index of one entry: 3, the largest.
    let at = bytes.windows(8).rposition(|window| window == 3i64.to_le_bytes()).unwrap();
    bytes[at] = 77;
    std::fs::write(&path, bytes).unwrap();
    let said = message(safetensors::load(&path));
    assert!(
        said.contains("graph.safetensors") && said.contains("`graph` is damaged") && said.contains("77"),
        "{said}"
    );
}

/// The values of one tensor at the coordinates of another one.
#[test]
fn numbers_are_copied_where_the_places_are_the_same() {
    let _one = load(PLUGINS);
    let coo = numbers().coalesce().unwrap();
    for x in [numbers(), coo.copy().unwrap(), coo.to_sparse_csr().unwrap()] {
        let (target, before) = (x.copy().unwrap(), x.version());
        target.zero_().unwrap();
        let values = target.values().unwrap();
        target.copy_(&x).unwrap();
        assert_eq!((f64s(&target), target.layout()), (f64s(&x), x.layout()));
        assert_eq!(values.to_vec_f64().unwrap(), x.values().unwrap().to_vec_f64().unwrap());
        assert_eq!(x.version(), before);
        let x = if x.is_coalesced().unwrap() { x } else { x.coalesce().unwrap() };
        let narrow = x.to_dtype(DType::F32).unwrap();
        narrow.zero_().unwrap();
        let noted = narrow.version();
        narrow.copy_(&x).unwrap();
        assert_eq!((f64s(&narrow), narrow.dtype()), (f64s(&x), DType::F32));
        assert!(narrow.version() > noted, "no change was noted");
        let dense = x.to_dense().unwrap();
        assert!(message(target.copy_(&dense)).contains("of layout sparse"));
        let wants = x.detach().requires_grad_(true).unwrap();
        assert!(message(target.copy_(&wants)).contains("no_grad"));
        assert_eq!(f64s(&target), f64s(&x), "refused, and yet changed");
    }
    let other = Tensor::sparse_coo(&ints(&[0, 0], &[2, 1]), &floats(&[9.0], &[1]), [3, 4]).unwrap();
    assert!(message(coo.copy_(&other)).contains("store the coordinates"));
    let rows = coo.to_sparse_csr().unwrap();
    assert!(message(rows.copy_(&other.to_sparse_csr().unwrap())).contains("store the coordinates"));
    assert!(message(rows.copy_(&coo)).contains("of layout sparse_csr"));
}

#[test]
fn what_cannot_be_saved_is_said_at_the_save() {
    let _one = load(PLUGINS);
    let coo = numbers().coalesce().unwrap();
    let rows = coo.to_sparse_csr().unwrap();
    coo.indices().unwrap().copy_(&ints(&[2, 1, 1, 0, 2, 2, 1, 0], &[2, 4])).unwrap();
    let transposed: Vec<i64> =
        rows.col_indices().unwrap().to_vec::<i64>().unwrap().into_iter().rev().collect();
    rows.col_indices().unwrap().copy_(&ints(&transposed, &[transposed.len()])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.safetensors");
    for x in [coo, rows] {
        let said = message(safetensors::save(&path, &StateDict::from([("graph".to_string(), x)])));
        assert!(said.contains("cannot save tensor `graph`"), "{said}");
        assert!(!path.exists());
    }
}

#[test]
fn the_reason_of_a_refusal_is_the_true_one() {
    let _one = load(PLUGINS);
    let whole = numbers().coalesce().unwrap();
    let other = Tensor::sparse_coo(&ints(&[0, 0], &[2, 1]), &floats(&[9.0], &[1]), [3, 4]).unwrap();
    for (x, other) in
        [(whole.clone(), other.clone()), (whole.to_sparse_csr().unwrap(), other.to_sparse_csr().unwrap())]
    {
        let said = message(x.add_(&other));
        assert!(said.contains("stored in this tensor already") && !said.contains("coalesce"), "{said}");
        let counts = x.to_dtype(DType::I32).unwrap();
        for said in [message(counts.mul_(1.5)), message(counts.div_(2)), message(counts.sqrt_())] {
            assert!(said.contains("it is i32") && said.contains("f32"), "{said}");
        }
        let narrow = x.to_dtype(DType::F32).unwrap();
        let said = message(narrow.mul_(&x.to_dense().unwrap()));
        assert!(said.contains("f64") && said.contains("it is f32"), "{said}");
    }
}

/// Scale and graph; the graph cannot be loaded in every shape.
struct Graph {
    a_weight: keyway::nn::Parameter,
    graph: keyway::nn::Buffer,
}

impl keyway::nn::Module for Graph {
    fn forward(&self, input: &Tensor) -> keyway::Result<Tensor> {
        self.graph.get().mm(input)
    }

    fn visit<'a>(&'a self, visitor: &mut keyway::nn::ModuleVisitor<'a>) {
        visitor.parameter("a_weight", &self.a_weight);
        visitor.buffer("graph", &self.graph);
    }
}

#[test]
fn a_module_with_a_sparse_buffer_is_loaded_whole_or_not() {
    use keyway::nn::{Buffer, Module, Parameter};
    let _one = load(PLUGINS);
    let of = |weight: f64, graph: Tensor| Graph {
        a_weight: Parameter::new(floats(&[weight], &[1])).unwrap(),
        graph: Buffer::new(graph),
    };
    let whole = numbers().coalesce().unwrap();
    let saved = of(1.0, whole.mul(2.0).unwrap()).state_dict();
    let model = of(5.0, whole.copy().unwrap());
    model.load_state_dict(&saved).unwrap();
    assert_eq!(f64s(&model.graph.get()), f64s(&whole.mul(2.0).unwrap()));
    assert_eq!(f64s(&model.a_weight.get()), [1.0]);
    let other = of(5.0, Tensor::sparse_coo(&ints(&[0, 0], &[2, 1]), &floats(&[9.0], &[1]), [3, 4]).unwrap());
    for graph in [whole.to_dense().unwrap(), whole] {
        let said = message(other.load_state_dict(&of(1.0, graph).state_dict()));
        assert!(said.contains("entry `graph`") && said.contains("(0 others were)"), "{said}");
        assert_eq!(f64s(&other.a_weight.get()), [5.0], "refused, and yet loaded");
    }
}
