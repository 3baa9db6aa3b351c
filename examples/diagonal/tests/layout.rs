//! The layout, loaded by the real loader beside the installed CPU backend, which serves the dense side of each comparison:
//! conversions, ops, gradients, printing, saving.

use keyway::autograd::gradcheck::{GradcheckFn, Tolerance, gradcheck, gradgradcheck};
use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::find_op;
use keyway::io::safetensors;
use keyway::nn::StateDict;
use keyway::{DType, Device, Layout, Result, Tensor, runtime};
use std::sync::Once;

fn diagonal() -> Layout {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let library = std::env::current_exe().unwrap().with_file_name("libdiagonal_plugin.so");
        let loaded = runtime::load_backends(&[library]).unwrap();
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    });
    Layout::from_name("example.org/diagonal").unwrap()
}

fn vector(values: &[f64]) -> Tensor {
    Tensor::new(values).unwrap()
}

fn of(values: &Tensor) -> Result<Tensor> {
    let n = values.shape()[0];
    Tensor::from_components(diagonal(), &[n, n], values.dtype(), &[values.clone()], &[])
}

const VALUES: [f64; 3] = [1.0, -2.0, 0.5];
const DENSE: [f64; 9] = [1.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.5];

fn message<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn there_and_back() {
    let layout = diagonal();
    let dense = Tensor::from_vec(DENSE.to_vec(), &[3, 3]).unwrap();
    let d = dense.to_layout(layout).unwrap();
    assert_eq!(d.component("values").unwrap().to_vec::<f64>().unwrap(), VALUES);
    assert_eq!(d.to_strided().unwrap().to_vec::<f64>().unwrap(), DENSE);
    let made = of(&vector(&VALUES)).unwrap();
    assert_eq!((made.layout(), made.to_vec::<f64>().unwrap()), (layout, DENSE.to_vec()));
    let empty = of(&vector(&[])).unwrap();
    assert!(empty.to_vec::<f64>().unwrap().is_empty());
    let text = made.to_string();
    assert!(text.contains("values=") && text.contains("layout=example.org/diagonal"), "{text}");

    let one_off = Tensor::from_vec(vec![1.0, 3.0, 0.0, 2.0], &[2, 2]).unwrap();
    assert!(message(one_off.to_layout(layout)).contains("3.0 in row 0, column 1"));
    let wide = Tensor::from_vec(vec![0.0f64; 6], &[2, 3]).unwrap();
    assert!(message(wide.to_layout(layout)).contains("must be a square matrix, to be held by layout"));
    let make = |sizes: &[usize], values: Tensor| {
        message(Tensor::from_components(layout, sizes, DType::F64, &[values], &[]))
    };
    assert!(make(&[2, 3], vector(&VALUES)).contains("must be a square matrix"));
    assert!(make(&[2, 2], vector(&VALUES)).contains("a strided vector of 2"));
    assert!(make(&[1, 1], Tensor::new(&[1.0f32]).unwrap()).contains("of the matrix's dtype"));
}

#[test]
fn ops_agree_with_dense_ones() {
    diagonal();
    let d = of(&vector(&VALUES)).unwrap();
    let dense = d.to_strided().unwrap();
    let wide = Tensor::from_vec((0..6).map(|i| f64::from(i) - 2.5).collect(), &[3, 2]).unwrap();
    let square = Tensor::from_vec((0..9).map(|i| f64::from(i) * 0.5).collect(), &[3, 3]).unwrap();
    type Op = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;
    let ops: [(&str, bool, Op); 11] = [
        ("diagonal @ dense", false, |d, wide, _| d.mm(wide)),
        ("dense @ diagonal", false, |d, wide, _| wide.t()?.mm(d)),
        ("diagonal @ diagonal", true, |d, _, _| d.mm(d)),
        ("diagonal + diagonal", true, |d, _, _| d.add_with(d, 3.0)),
        ("diagonal + dense", false, |d, _, square| d.add_with(square, 3.0)),
        ("dense + diagonal", false, |d, _, square| square.add_with(d, 3.0)),
        ("diagonal * number", true, |d, _, _| d.mul(2.0)),
        ("diagonal * diagonal", true, |d, _, _| d.mul(d)),
        ("dense * diagonal", true, |d, _, square| square.mul(d)),
        ("transpose", true, |d, _, _| d.t()),
        ("sum", false, |d, _, _| d.sum_all()),
    ];
    for (name, stays, op) in ops {
        let (got, wanted) = (op(&d, &wide, &square).unwrap(), op(&dense, &wide, &square).unwrap());
        assert_eq!(got.to_vec::<f64>().unwrap(), wanted.to_vec::<f64>().unwrap(), "{name}");
        assert_eq!((got.shape(), got.layout() == diagonal()), (wanted.shape(), stays), "{name}");
    }
    let narrow = d.to_dtype(DType::F32).unwrap();
    assert_eq!((narrow.layout(), narrow.dtype()), (diagonal(), DType::F32));
    assert_eq!(narrow.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap(), DENSE);
    assert!(message(d.exp()).contains("no kernel for (cpu, example.org/diagonal, f64)"));
}

#[test]
fn gradients_agree_with_differences() {
    diagonal();
    let inputs: Vec<Tensor> = [
        vector(&VALUES),
        Tensor::from_vec((0..6).map(|i| f64::from(i) * 0.3 - 0.7).collect(), &[3, 2]).unwrap(),
        vector(&[0.3, 1.1, -0.4]),
    ]
    .into_iter()
    .map(|t| t.requires_grad_(true).unwrap())
    .collect();
    let functions: [(&str, &GradcheckFn<'_>); 6] = [
        ("diagonal @ dense", &|t| Ok(vec![of(&t[0])?.mm(&t[1])?])),
        ("dense @ diagonal", &|t| Ok(vec![t[1].t()?.mm(&of(&t[0])?)?])),
        ("sums and products", &|t| {
            let (a, b) = (of(&t[0])?, of(&t[2])?);
            Ok(vec![a.mul(&b)?.add(&b.mul(3.0)?)?.t()?.mm(&t[1])?])
        }),
        ("sum", &|t| Ok(vec![of(&t[0])?.sum_all()?])),
        ("to_strided", &|t| Ok(vec![of(&t[0])?.to_strided()?])),
        ("component", &|t| Ok(vec![of(&t[0])?.mul(2.0)?.component("values")?.mul(&t[2])?])),
    ];
    for (name, function) in functions {
        // Each function is passed all inputs; those that it does not read have a gradient of zero.
        let all = |t: &[Tensor]| -> Result<Vec<Tensor>> {
            let mut made = function(t)?;
            for unread in t {
                made.push(unread.mul(1.0)?);
            }
            Ok(made)
        };
        let found = gradcheck(&all, &inputs, Tolerance::default()).unwrap();
        assert!(found.is_none(), "{name}: {}", found.unwrap());
        let found = gradgradcheck(&all, &inputs, Tolerance::default()).unwrap();
        assert!(found.is_none(), "{name}, twice: {}", found.unwrap());
    }
}

#[test]
fn a_leaf_collects_a_gradient_of_its_layout() {
    diagonal();
    let d = of(&vector(&VALUES)).unwrap().requires_grad_(true).unwrap();
    let right = Tensor::from_vec((0..9).map(f64::from).collect(), &[3, 3]).unwrap();
    d.mm(&right).unwrap().sum_all().unwrap().backward().unwrap();
    // The gradient of the product is dense; its diagonal is the row sums of `right`.
    let grad = d.grad().unwrap();
    assert_eq!(grad.layout(), diagonal());
    assert_eq!(grad.component("values").unwrap().to_vec::<f64>().unwrap(), [3.0, 12.0, 21.0]);
    d.sum_all().unwrap().backward().unwrap();
    let grad = d.grad().unwrap();
    assert_eq!(grad.component("values").unwrap().to_vec::<f64>().unwrap(), [4.0, 13.0, 22.0]);
}

#[test]
fn components_are_saved_and_loaded() {
    diagonal();
    let path = std::env::temp_dir().join(format!("keyway-diagonal-{}.safetensors", std::process::id()));
    let d = of(&vector(&VALUES)).unwrap();
    let saved = StateDict::from([("d.values".to_string(), d.component("values").unwrap())]);
    safetensors::save(&path, &saved).unwrap();
    let loaded = safetensors::load(&path);
    std::fs::remove_file(&path).unwrap();
    let made = of(&loaded.unwrap()["d.values"]).unwrap();
    assert_eq!((made.layout(), made.to_vec::<f64>().unwrap()), (diagonal(), DENSE.to_vec()));
}

#[test]
fn the_readme_shows_who_serves_what() {
    let layout = diagonal();
    for (op, served) in [("mm", true), ("exp", false)] {
        let explained = explain(find_op(op).unwrap(), Device::CPU, layout, DType::F64);
        let text = explained.to_string();
        assert!(include_str!("../README.md").contains(&text), "the README lacks:\n{text}");
        assert_eq!(explained.candidates.first().is_some_and(|first| first.chosen), served);
        assert_eq!(explained.verdict.contains("`example.org/diagonal`"), served);
    }
}
