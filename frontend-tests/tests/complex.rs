//! Complex tensors: construction, arithmetic, gradients.

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::prelude::*;
use keyway::{Complex, Result};

type C = Complex<f64>;

fn c(re: f64, im: f64) -> C {
    C::new(re, im)
}

fn sample() -> Tensor {
    Tensor::new([[c(0.5, -1.2), c(-0.7, 0.3)], [c(1.4, 0.9), c(0.2, 2.1)]]).unwrap()
}

fn other() -> Tensor {
    Tensor::new([[c(1.5, 0.4), c(-0.6, -0.8)], [c(0.3, -1.9), c(2.2, 0.1)]]).unwrap()
}

/// Checks the first and second derivatives of a function of complex tensors.
fn check(name: &str, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.copy().unwrap().requires_grad_(true).unwrap()).collect();
    let f = |inputs: &[Tensor]| Ok(vec![f(inputs)?]);
    let first = gradcheck(&f, &inputs, Tolerance::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(first.is_none(), "{name}: {}", first.unwrap());
    let second = gradgradcheck(&f, &inputs, Tolerance::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(second.is_none(), "{name}, second: {}", second.unwrap());
}

#[test]
fn functions_have_first_and_second_derivatives() {
    type Unary = fn(&Tensor) -> Result<Tensor>;
    let functions: &[(&str, Unary)] = &[
        ("neg", |x| x.neg()),
        ("conj", |x| x.conj()),
        ("abs", |x| x.abs()),
        ("angle", |x| x.angle()),
        ("sgn", |x| x.sgn()),
        ("real", |x| x.real()),
        ("imag", |x| x.imag()),
        ("view_as_real", |x| x.view_as_real()),
        ("reciprocal", |x| x.reciprocal()),
        ("square", |x| x.square()),
        ("sqrt", |x| x.sqrt()),
        ("rsqrt", |x| x.rsqrt()),
        ("exp", |x| x.exp()),
        ("expm1", |x| x.expm1()),
        ("log", |x| x.log()),
        ("log2", |x| x.log2()),
        ("log10", |x| x.log10()),
        ("log1p", |x| x.log1p()),
        ("sin", |x| x.sin()),
        ("cos", |x| x.cos()),
        ("tan", |x| x.tan()),
        ("sinh", |x| x.sinh()),
        ("cosh", |x| x.cosh()),
        ("tanh", |x| x.tanh()),
        ("asin", |x| x.asin()),
        ("acos", |x| x.acos()),
        ("atan", |x| x.atan()),
        ("asinh", |x| x.asinh()),
        ("acosh", |x| x.acosh()),
        ("atanh", |x| x.atanh()),
        ("sigmoid", |x| x.sigmoid()),
        ("pow 3", |x| x.pow(3)),
        ("pow 0.5", |x| x.pow(0.5)),
        ("sum", |x| x.sum_all()),
        ("mean", |x| x.mean(0)),
        ("prod", |x| x.prod(1)),
        ("cumsum", |x| x.cumsum(1)),
        ("cumprod", |x| x.cumprod(0)),
        ("transpose", |x| x.t()),
        ("flip", |x| x.flip(0)),
        ("tril", |x| x.tril()),
        ("trace", |x| x.trace()),
        ("to real parts", |x| x.real()?.mul(&x.imag()?)),
        ("index", |x| x.select(0, 1)?.mul(&x.select(1, 0)?)),
    ];
    for (name, f) in functions {
        check(name, &[sample()], |inputs| f(&inputs[0]));
    }
}

#[test]
fn functions_of_two_tensors_have_first_and_second_derivatives() {
    type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let functions: &[(&str, Binary)] = &[
        ("add", |a, b| a.add(b)),
        ("sub", |a, b| a.sub(b)),
        ("mul", |a, b| a.mul(b)),
        ("div", |a, b| a.div(b)),
        ("pow", |a, b| a.pow(b)),
        ("mm", |a, b| a.mm(b)),
        ("matmul", |a, b| a.matmul(b)),
        ("addmm", |a, b| a.addmm(a, b)),
        ("outer", |a, b| a.select(0, 0)?.outer(&b.select(0, 1)?)),
        ("dot", |a, b| a.select(0, 0)?.dot(&b.select(0, 1)?)),
        ("mv", |a, b| a.mv(&b.select(0, 1)?)),
        ("einsum", |a, b| Tensor::einsum("ij,kj->ik", &[a, b])),
        ("where", |a, b| a.real()?.gt(0)?.where_cond(a, b)),
        ("cat", |a, b| Tensor::cat(&[a, b], 0)),
    ];
    for (name, f) in functions {
        check(name, &[sample(), other()], |inputs| f(&inputs[0], &inputs[1]));
        // A real tensor receives a real gradient.
        check(&format!("real {name}"), &[sample(), other().abs().unwrap()], |inputs| f(&inputs[0], &inputs[1]));
        check(&format!("{name} real"), &[sample().abs().unwrap(), other()], |inputs| f(&inputs[0], &inputs[1]));
    }
}
