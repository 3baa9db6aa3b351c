//! Compares loops in the wide type with the same arithmetic on each element.

use crate::testing::{arg, tensor, with_call};
use crate::{CallExt, Cost};
use keyway_sdk::author::{Element, Float, Widen};
use keyway_sdk::half::{bf16, f16};
use std::fmt::Debug;

/// Lengths around that of a chunk, and around that of a row that is passed to the function in place.
const LENGTHS: [i64; 9] = [1, 7, 31, 32, 33, 63, 64, 100, 1000];

/// Values whose sums and products need rounding.
fn numbers<T: Element>(n: i64, step: f64) -> Vec<T> {
    (0..n).map(|i| T::from_f64((i % 97) as f64 * step - 11.0)).collect()
}

/// Strides of a `rows` by `n` matrix, for each memory format: rows, columns, gaps, a repeated row and a repeated column.
fn formats(rows: i64, n: i64) -> [[i64; 2]; 5] {
    [[n, 1], [1, rows], [2 * n, 2], [0, 1], [1, 0]]
}

fn at(strides: [i64; 2], r: i64, c: i64) -> usize {
    (r * strides[0] + c * strides[1]) as usize
}

fn two_inputs<T: Float<Acc = f32>>() {
    const ROWS: i64 = 3;
    for n in LENGTHS {
        let room = 4 * ROWS * n + 8;
        for to in &formats(ROWS, n)[..3] {
            for from in formats(ROWS, n) {
                let (mut a, mut b) = (numbers::<T>(room, 0.3), numbers::<T>(room, 1.7));
                let mut out = vec![T::default(); room as usize];
                let (ta, tb) =
                    (tensor(a.as_mut_ptr(), &[ROWS, n], &from), tensor(b.as_mut_ptr(), &[ROWS, n], &[n, 1]));
                let t = tensor(out.as_mut_ptr(), &[ROWS, n], to);
                with_call(&[arg(&ta), arg(&tb)], &[&t], |call| {
                    call.map2_wide::<T, T, T>(Cost::Cheap, |a, b| a * b + b).unwrap();
                });
                for (r, c) in (0..ROWS).flat_map(|r| (0..n).map(move |c| (r, c))) {
                    let (x, y) = (a[at(from, r, c)].to_acc(), b[at([n, 1], r, c)].to_acc());
                    let expected = T::from_acc(x * y + y);
                    assert_eq!(out[at(*to, r, c)], expected, "{} {to:?} {from:?} ({r}, {c})", T::NAME);
                }
            }
        }
    }
}

#[test]
fn narrow_floats_are_computed_wide_and_rounded_once_for_any_strides() {
    two_inputs::<f16>();
    two_inputs::<bf16>();
    two_inputs::<f32>();
}

#[test]
fn an_input_of_wide_values_may_be_the_output() {
    for n in LENGTHS {
        let mut a = numbers::<f16>(n, 0.3);
        let expected: Vec<f16> = a.iter().map(|x| f16::from_f32(x.to_f32() / 3.0)).collect();
        let t = tensor(a.as_mut_ptr(), &[n], &[1]);
        with_call(&[arg(&t)], &[&t], |call| {
            call.map1_wide::<f16, f16>(Cost::Cheap, |x| x / 3.0).unwrap();
        });
        assert_eq!(a, expected);
    }
}

fn cast<A: Float, O: Element + Debug + Widen<Wide = O>>(convert: fn(A::Acc) -> O) {
    for n in LENGTHS {
        let (mut a, mut out) = (numbers::<A>(n, 0.3), vec![O::default(); n as usize + 1]);
        let (ta, to) = (tensor(a.as_mut_ptr(), &[n], &[1]), tensor(out.as_mut_ptr(), &[n], &[1]));
        with_call(&[arg(&ta)], &[&to], |call| {
            call.map1_wide_of::<A, O>(0, Cost::Cheap, convert).unwrap();
        });
        let expected: Vec<O> = a.iter().map(|x| convert(x.to_acc())).collect();
        assert_eq!(out[..n as usize], expected, "{} to {}", A::NAME, O::NAME);
        assert_eq!(out[n as usize], O::default(), "wrote past the end");
    }
}

#[test]
fn results_may_be_of_another_size_than_the_inputs() {
    cast::<f16, bool>(|x| x < 1.0);
    cast::<bf16, i64>(|x| x as i64);
    cast::<f16, f64>(f64::from);
    cast::<f64, u8>(|x| x as u8);
}

#[test]
fn three_inputs_and_a_repeated_one_are_widened() {
    for n in LENGTHS {
        let (mut a, mut b, mut c) = (numbers::<bf16>(n, 0.3), numbers::<bf16>(n, 1.7), [bf16::from_f32(0.3)]);
        let mut out = vec![bf16::ZERO; n as usize];
        let (ta, tb) = (tensor(a.as_mut_ptr(), &[n], &[1]), tensor(b.as_mut_ptr(), &[n], &[1]));
        let (tc, to) = (tensor(c.as_mut_ptr(), &[], &[]), tensor(out.as_mut_ptr(), &[n], &[1]));
        with_call(&[arg(&ta), arg(&tb), arg(&tc)], &[&to], |call| {
            call.map3_wide::<bf16, bf16, bf16, bf16>(Cost::Cheap, |a, b, c| a + b * c).unwrap();
        });
        for (i, out) in out.iter().enumerate() {
            let expected = a[i].to_f32() + b[i].to_f32() * c[0].to_f32();
            assert_eq!(*out, bf16::from_f32(expected), "{n} {i}");
        }
    }
}
