//! Ops of one tensor that keep zero, on what a sparse tensor stores: all that say so, with a gradient and without.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::ops::by_name;
use keyway::ops::def::{OpDef, OpFlags};
use keyway::{Arg, Tensor};

fn keeps_zero(def: &OpDef) -> bool {
    let flags = [
        OpFlags::ZERO_PRESERVING,
        OpFlags::ZERO_PRESERVING_IF_POSITIVE,
        OpFlags::ZERO_PRESERVING_IF_IN_BOUNDS,
        OpFlags::ZERO_PRESERVING_IF_NONZERO,
    ];
    flags.iter().any(|flag| def.is(*flag))
}

/// The arguments of an op after the tensor; the defaults where it has some.
fn arguments(name: &str) -> Vec<Vec<Arg<'static>>> {
    match name {
        "clamp" => vec![
            vec![Arg::Float(-0.4), Arg::Float(0.36)],
            vec![Arg::Int(0), Arg::None],
            vec![Arg::None, Arg::Float(0.61)],
        ],
        "fmod" | "remainder" => vec![vec![Arg::Float(0.27)], vec![Arg::Int(-1)]],
        "pow" => vec![vec![Arg::Float(1.5)], vec![Arg::Int(3)]],
        _ => vec![Vec::new()],
    }
}

/// Values at which every function is differentiable.
fn tensors() -> Vec<Tensor> {
    let places = ints(&[0, 1, 1, 2, 0, 3, 2, 2, 1, 3], &[2, 5]);
    let twice = Tensor::sparse_coo(&places, &floats(&[0.3, 0.2, 0.35, 0.8, 0.11], &[5]), [3, 4]).unwrap();
    let rows = floats(&[0.7, 0.15, 0.2, 0.45, 0.0, 0.33], &[3, 2]);
    let hybrid = Tensor::sparse_coo(&ints(&[2, 0, 2], &[1, 3]), &rows, [3, 2]).unwrap();
    let none = Tensor::sparse_coo(&ints(&[], &[2, 0]), &floats(&[], &[0]), [3, 4]).unwrap();
    let compressed = twice.to_sparse_csr().unwrap();
    vec![twice.coalesce().unwrap(), twice, hybrid, none, compressed]
}

#[test]
fn all_ops_that_keep_zero_work_on_what_is_stored() {
    let _one = load(PLUGINS);
    let mut count = 0;
    for def in keyway::ops::all().filter(|def| keeps_zero(def)) {
        let name = def.name();
        for rest in arguments(name) {
            let run = |t: &Tensor| -> Tensor {
                let args: Vec<Arg<'_>> = std::iter::once(Arg::from(t)).chain(rest.iter().copied()).collect();
                by_name::call(name, &args).unwrap_or_else(|e| panic!("{name} {rest:?}: {e}")).remove(0)
            };
            for s in tensors() {
                let d = s.to_dense().unwrap();
                let made = run(&s);
                assert_eq!(made.layout(), s.layout(), "{name}");
                assert_close(&f64s(&made), &f64s(&run(&d)), 1e-12);
                // An infinite slope at 0 is one of places where nothing is stored.
                let stored = s.detach().requires_grad_(true).unwrap();
                let whole = d.add(&d.eq(0).unwrap().to_dtype(d.dtype()).unwrap().mul(0.5).unwrap()).unwrap();
                let whole = whole.requires_grad_(true).unwrap();
                let (made, wanted) = (run(&stored), run(&whole));
                assert_eq!(made.layout(), s.layout(), "{name}");
                assert_eq!(made.requires_grad(), wanted.requires_grad(), "{name}");
                if made.requires_grad() {
                    made.mul(3).unwrap().sum_all().unwrap().backward().unwrap();
                    wanted.mul(3).unwrap().sum_all().unwrap().backward().unwrap();
                    let wanted = whole.grad().unwrap().sparse_mask_like(&s).unwrap();
                    let wanted = wanted.values().unwrap().to_vec_f64().unwrap();
                    let got = stored.grad().unwrap().values().unwrap().to_vec_f64().unwrap();
                    // The one stored 0 of the hybrid tensor is none in the other.
                    let zeros: Vec<bool> = d
                        .eq(0)
                        .unwrap()
                        .to_dtype(d.dtype())
                        .unwrap()
                        .sparse_mask_like(&s)
                        .unwrap()
                        .values()
                        .unwrap()
                        .to_vec_f64()
                        .unwrap()
                        .iter()
                        .map(|zero| *zero == 1.0)
                        .collect();
                    let but_zeros = |all: &[f64]| -> Vec<f64> {
                        all.iter().zip(&zeros).filter(|(_, zero)| !**zero).map(|(g, _)| *g).collect()
                    };
                    assert_close(&but_zeros(&got), &but_zeros(&wanted), 1e-12);
                }
            }
        }
        count += 1;
    }
    assert!(count >= 35, "{count}");
}

#[test]
fn activations_in_pieces_keep_zero() {
    let _one = load(PLUGINS);
    type Op = fn(&Tensor) -> keyway::Result<Tensor>;
    let ops: [(&str, Op); 8] = [
        ("hardtanh", |t| t.hardtanh_with(-0.3, 0.4)),
        ("relu6", |t| t.mul(20)?.relu6()),
        ("hardshrink", |t| t.hardshrink_with(0.25)),
        ("softsign", Tensor::softsign),
        ("tanhshrink", Tensor::tanhshrink),
        ("clamp_min", |t| t.clamp_min(-0.5)),
        ("clamp_max", |t| t.clamp_max(0.26)),
        ("nan_to_num", |t| t.div(0)?.nan_to_num_with(Some(1.5), Some(2.5), Some(-2.5))),
    ];
    for (name, op) in ops {
        for s in tensors() {
            if name == "nan_to_num" && s.dense_dim().unwrap() > 0 {
                continue;
            }
            let wanted = match name {
                // Unstored elements are not divided.
                "nan_to_num" => s.sign().unwrap().mul(2.5).unwrap().to_dense().unwrap(),
                _ => op(&s.to_dense().unwrap()).unwrap(),
            };
            let made = op(&s).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!((made.layout(), made.dtype()), (s.layout(), wanted.dtype()), "{name}");
            assert_close(&f64s(&made), &f64s(&wanted), 1e-12);
        }
    }
    let ones = Tensor::sparse_coo(&ints(&[1, 1], &[1, 2]), &ints(&[3, 4], &[2]), [3]).unwrap();
    assert_eq!(f64s(&ones.clamp(-5, 5).unwrap()), [0.0, 5.0, 0.0]);
    assert_eq!(f64s(&ones.fmod(4).unwrap()), [0.0, 3.0, 0.0]);
    assert_eq!(f64s(&ones.remainder(-4).unwrap()), [0.0, -1.0, 0.0]);
}

#[test]
fn what_does_not_keep_zero_names_the_way_out() {
    let _one = load(PLUGINS);
    for s in tensors() {
        for wants in [false, true] {
            let s = s.detach().requires_grad_(wants).unwrap();
            let divisors = s.to_dense().unwrap().add(1).unwrap();
            let refused = [
                ("clamp", s.clamp(0.1, 1)),
                ("clamp", s.clamp(None, -1)),
                ("hardtanh", s.hardtanh_with(1, 2)),
                ("fmod", s.fmod(0.0)),
                ("remainder", s.remainder(0.0)),
                ("remainder", s.remainder(&divisors)),
                ("pow", s.pow(-1.0)),
            ];
            for (name, made) in refused {
                let text = made.map(|_| ()).unwrap_err().to_string();
                assert!(text.contains("to_dense()"), "{name}: {text}");
            }
        }
    }
}
