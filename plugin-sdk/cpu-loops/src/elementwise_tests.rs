//! Compares element-wise loops with a nested loop without collapsed dimensions, tiles or blocks.

use crate::testing::{arg, row_major, tensor, with_call};
use crate::{CallExt, Cost, map0, map1, map1_slices, map2, map2_slices, map3};
use keyway_sdk::author::Plain;
use proptest::prelude::*;

/// Every index of a shape, in row-major order.
fn indices(sizes: &[i64]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in sizes {
        all = all
            .into_iter()
            .flat_map(|i| (0..n as usize).map(move |k| [i.clone(), vec![k]].concat()))
            .collect();
    }
    all
}

fn at(index: &[usize], strides: &[i64]) -> usize {
    index.iter().zip(strides).map(|(i, s)| i * *s as usize).sum()
}

/// Strides of a permuted, gapped, partly expanded tensor, and the memory that they need.
fn layout(sizes: &[i64], order: &[usize], gap: i64, expand: u32) -> (Vec<i64>, usize) {
    let mut strides = vec![0; sizes.len()];
    let mut next = gap.max(1);
    for &d in order {
        if expand >> d & 1 == 0 {
            strides[d] = next;
            next *= sizes[d].max(1) + (gap > 1 && d == 0) as i64;
        }
    }
    (strides, next as usize + 1)
}

type Case = (Vec<i64>, [(Vec<usize>, i64, u32); 4]);

fn cases(most: i64, rank: usize) -> impl Strategy<Value = Case> {
    prop::collection::vec(prop_oneof![3 => 1..=most, 1 => Just(1)], 0..=rank).prop_flat_map(|sizes| {
        let order: Vec<usize> = (0..sizes.len()).collect();
        let one = || (Just(order.clone()).prop_shuffle(), 1..3i64, prop_oneof![Just(0u32), 0..256u32]);
        (Just(sizes), [one().boxed(), one().boxed(), one().boxed(), one().boxed()])
    })
}

fn check((sizes, operands): Case) {
    let all = indices(&sizes);
    let layouts: Vec<(Vec<i64>, usize)> = operands
        .iter()
        .enumerate()
        .map(|(k, (order, gap, expand))| layout(&sizes, order, *gap, if k == 0 { 0 } else { *expand }))
        .collect();
    let mut memory: Vec<Vec<f32>> = layouts
        .iter()
        .enumerate()
        .map(|(k, (_, n))| (0..*n).map(|i| (i * (k + 3) % 1009) as f32).collect())
        .collect();
    let expected: Vec<f32> = all
        .iter()
        .map(|i| {
            let v = |k: usize| memory[k][at(i, &layouts[k].0)];
            v(1) * 3.0 + v(2) * 2.0 - v(3)
        })
        .collect();
    let before = memory[0].clone();
    let tensors: Vec<_> = memory
        .iter_mut()
        .zip(&layouts)
        .map(|(m, (strides, _))| tensor(m.as_mut_ptr(), &sizes, strides))
        .collect();
    let args = [arg(&tensors[1]), arg(&tensors[2]), arg(&tensors[3])];
    with_call(&args, &[&tensors[0]], |call| {
        let view = |i| call.view::<f32>(i).unwrap();
        map3(view(0), view(1), view(2), call.out(0).unwrap(), Cost::Cheap, |a: f32, b: f32, c: f32| {
            a * 3.0 + b * 2.0 - c
        })
        .unwrap();
    });
    let mut untouched = before;
    for (i, e) in all.iter().zip(&expected) {
        let o = at(i, &layouts[0].0);
        assert_eq!(memory[0][o], *e, "{sizes:?} {i:?}");
        untouched[o] = *e;
    }
    assert_eq!(memory[0], untouched, "wrote outside the output");

    // Two inputs, and blocks, on the same operands.
    let tensors: Vec<_> = memory
        .iter_mut()
        .zip(&layouts)
        .map(|(m, (strides, _))| tensor(m.as_mut_ptr(), &sizes, strides))
        .collect();
    let args = [arg(&tensors[1]), arg(&tensors[2])];
    let expect2: Vec<f32> = all
        .iter()
        .map(|i| at(i, &layouts[1].0))
        .zip(all.iter().map(|i| at(i, &layouts[2].0)))
        .map(|(a, b)| ((a * 4) % 1009) as f32 - ((b * 5) % 1009) as f32)
        .collect();
    for blocks in [false, true] {
        with_call(&args, &[&tensors[0]], |call| {
            let (a, b) = (call.view::<f32>(0).unwrap(), call.view::<f32>(1).unwrap());
            let mut out = call.out::<f32>(0).unwrap();
            map0(out.reborrow(), Cost::Cheap, || f32::NAN).unwrap();
            if blocks {
                map2_slices(a, b, out.reborrow(), Cost::Cheap, |a: &[f32], b: &[f32], o: &mut [f32]| {
                    for ((o, a), b) in o.iter_mut().zip(a).zip(b) {
                        *o = a - b;
                    }
                })
                .unwrap();
            } else {
                map2(a, b, out.reborrow(), Cost::Cheap, |a: f32, b: f32| a - b).unwrap();
            }
            for (i, e) in all.iter().zip(&expect2) {
                assert_eq!(out.get(i), Some(*e), "{sizes:?} {i:?} {blocks}");
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn any_strides_agree_with_a_nested_loop(case in cases(5, 5)) {
        check(case);
    }

    #[test]
    fn tiles_agree_with_a_nested_loop(case in cases(if cfg!(miri) { 12 } else { 75 }, 2)) {
        check(case);
    }
}

#[test]
fn rank_above_eight_is_served() {
    let sizes = [2i64; 10];
    let order: Vec<usize> = (0..10).rev().collect();
    let shuffled = vec![3, 1, 9, 0, 5, 2, 8, 7, 4, 6];
    check((
        sizes.to_vec(),
        [(order, 2, 0), (shuffled.clone(), 1, 0), (shuffled, 2, 5), ((0..10).collect(), 1, 0)],
    ));
}

#[test]
fn in_place_is_exact_for_long_short_and_strided_runs() {
    for (n, stride) in [(1usize, 1i64), (7, 1), (8, 1), (1000, 1), (100, 3)] {
        let mut a: Vec<f32> = (0..n * stride as usize).map(|i| i as f32).collect();
        let mut b = vec![10.0f32; n * stride as usize];
        let ta = tensor(a.as_mut_ptr(), &[n as i64], &[stride]);
        let tb = tensor(b.as_mut_ptr(), &[n as i64], &[stride]);
        with_call(&[arg(&ta), arg(&tb)], &[&ta], |call| {
            let (x, y) = (call.view::<f32>(0).unwrap(), call.view::<f32>(1).unwrap());
            assert!(x.as_slice().is_none(), "an argument that is an output is not lent");
            let mut out = call.out::<f32>(0).unwrap();
            assert!(out.as_mut_slice().is_none());
            map2(x, y, out.reborrow(), Cost::Cheap, |a: f32, b: f32| a + b).unwrap();
            map1_slices(x, out, Cost::Cheap, |a: &[f32], o: &mut [f32]| {
                o.iter_mut().zip(a).for_each(|(o, a)| *o = a * 2.0)
            })
            .unwrap();
        });
        for (i, v) in a.iter().enumerate() {
            let touched = i % stride as usize == 0;
            assert_eq!(*v, if touched { (i as f32 + 10.0) * 2.0 } else { i as f32 });
        }
    }
}

#[test]
fn one_element_stands_for_any_shape_and_other_shapes_are_refused() {
    let mut a = [5i32];
    let mut b = [1i32, 2, 3];
    let mut o = [0i32; 6];
    let (ta, tb) = (tensor(a.as_mut_ptr(), &[], &[]), tensor(b.as_mut_ptr(), &[3], &[1]));
    let to = tensor(o.as_mut_ptr(), &[2, 3], &row_major(&[2, 3]));
    with_call(&[arg(&ta), arg(&tb)], &[&to], |call| {
        let mut out = call.out::<i32>(0).unwrap();
        map1(call.view::<i32>(0).unwrap(), out.reborrow(), Cost::Heavy, |a: i32| a + 1).unwrap();
        let refused = map1(call.view::<i32>(1).unwrap(), out, Cost::Cheap, |a: i32| a);
        assert!(refused.unwrap_err().to_string().contains("[2, 3]"));
    });
    assert_eq!(o, [6; 6]);
}

#[test]
fn nothing_is_written_where_there_are_no_elements() {
    let mut o: [f64; 0] = [];
    for strides in [[1i64, 1], [1, 7]] {
        let to = tensor(o.as_mut_ptr(), &[0, 3], &strides);
        with_call(&[arg(&to)], &[&to], |call| {
            let x = call.view::<f64>(0).unwrap();
            assert_eq!(x.iter().count(), 0);
            map1(x, call.out(0).unwrap(), Cost::Cheap, |_: f64| -> f64 { panic!("no element") }).unwrap();
        });
    }
}

#[test]
fn a_bool_of_any_byte_is_read_and_a_clean_one_written() {
    let mut bytes = [0u8, 1, 2, 255, 0, 128, 7, 0, 9];
    let mut o = [9u8; 9];
    let ti = tensor(bytes.as_mut_ptr().cast::<bool>(), &[9], &[1]);
    let to = tensor(o.as_mut_ptr().cast::<bool>(), &[9], &[1]);
    with_call(&[arg(&ti)], &[&to], |call| {
        map1(call.view::<bool>(0).unwrap(), call.out(0).unwrap(), Cost::Cheap, |a: bool| !a).unwrap();
    });
    assert_eq!(o, [1, 0, 0, 0, 1, 0, 0, 1, 0]);
}

/// The tested function `a * 3 + b * 2`, which distinguishes its inputs.
fn mixed(a: f32, b: f32) -> f32 {
    a * 3.0 + b * 2.0
}

/// Applies [`mixed`] to two views of numbered memory; the first may be the output.
fn mix(sizes: &[i64], out: &[i64], a: Option<&[i64]>, b: &[i64], room: usize) {
    let numbers = |k: usize| (0..room).map(|i| (i * k % 1009) as f32).collect::<Vec<f32>>();
    let (mut o, mut x, mut y) = (numbers(3), numbers(5), numbers(7));
    let (before, p, q) = (o.clone(), if a.is_some() { x.clone() } else { o.clone() }, y.clone());
    let to = tensor(o.as_mut_ptr(), sizes, out);
    let ty = tensor(y.as_mut_ptr(), sizes, b);
    let tx = a.map(|a| tensor(x.as_mut_ptr(), sizes, a));
    with_call(&[arg(tx.as_ref().unwrap_or(&to)), arg(&ty)], &[&to], |call| {
        call.map2(Cost::Cheap, mixed).unwrap();
    });
    let mut expected = before;
    for i in indices(sizes) {
        expected[at(&i, out)] = mixed(p[at(&i, a.unwrap_or(out))], q[at(&i, b)]);
    }
    assert_eq!(o, expected, "{sizes:?} {out:?} {a:?} {b:?}");
}

#[test]
fn an_input_may_be_the_output_in_any_order_and_beside_any_other_input() {
    // Row-major, column-major, gaps, and lengths on both sides of a chunk.
    for n in [1i64, 15, 16, 31, 32, 33, 63, 64, 65, 100, 130] {
        let room = (4 * n * 4) as usize;
        for (out, b) in
            [([n, 1], [n, 1]), ([1, 3], [1, 3]), ([n + 2, 1], [n + 2, 1]), ([2 * n, 2], [2 * n, 2])]
        {
            mix(&[3, n], &out, None, &b, room);
            for other in [[0, 0], [0, 1], [1, 0], [n, 1], [1, 3]] {
                mix(&[3, n], &out, None, &other, room);
            }
        }
    }
}

#[test]
fn an_input_that_repeats_an_element_is_read_at_the_right_rows() {
    for n in [1i64, 32, 63, 64, 65, 97, 300] {
        let room = (10 * n + 30) as usize;
        for out in [[n, 1], [n + 1, 1], [1, 5]] {
            for a in [[0, 0], [1, 0], [3, 0], [0, 1], [n, 1], [1, 5]] {
                for b in [[0, 0], [2, 0], [0, 1], [1, 5]] {
                    mix(&[5, n], &out, Some(&a), &b, room);
                }
            }
        }
    }
}

#[test]
fn an_input_of_one_element_is_repeated_for_each_size_of_element() {
    fn check<A: Plain, O: Plain>(value: A, expected: O, f: fn(A, O) -> O) {
        for n in [1i64, 15, 16, 17, 31, 32, 64, 65, 200] {
            let (mut a, mut b) = ([value], vec![O::from_i64(2); n as usize]);
            let mut o = vec![O::from_i64(0); n as usize + 1];
            let (ta, tb) = (tensor(a.as_mut_ptr(), &[], &[]), tensor(b.as_mut_ptr(), &[n], &[1]));
            let to = tensor(o.as_mut_ptr(), &[n], &[1]);
            with_call(&[arg(&ta), arg(&tb)], &[&to], |call| call.map2(Cost::Cheap, f).unwrap());
            assert!(o[..n as usize].iter().all(|o| *o == expected), "{n}: {o:?}");
            assert_eq!(o[n as usize], O::from_i64(0), "wrote past the end");
        }
    }
    check(3u8, 5u8, |a, b| a + b);
    check(3i16, 5i16, |a, b| a + b);
    check(3i64, 5i64, |a, b| a + b);
    check(3.0f64, 5u8, |a, b| a as u8 + b);
    check(3u8, 5.0f64, |a, b| a as f64 + b);
}

#[test]
fn an_input_that_partly_meets_the_output_is_read_as_it_was_within_a_block() {
    // Other strides, or elements of another size, at the address of the output.
    let mut memory: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let (to, ti) =
        (tensor(memory.as_mut_ptr(), &[9, 9], &[9, 1]), tensor(memory.as_mut_ptr(), &[9, 9], &[1, 9]));
    with_call(&[arg(&ti)], &[&to], |call| call.map1(Cost::Cheap, |a: f32| -a).unwrap());
    for i in indices(&[9, 9]) {
        assert_eq!(memory[at(&i, &[9, 1])], -(at(&i, &[1, 9]) as f32));
    }
    let mut words: Vec<u32> = (0..100).collect();
    let (to, ti) =
        (tensor(words.as_mut_ptr().cast::<u16>(), &[90], &[1]), tensor(words.as_mut_ptr(), &[90], &[1]));
    with_call(&[arg(&ti)], &[&to], |call| call.map1(Cost::Cheap, |a: u32| a as u16).unwrap());
    // SAFETY: the words are initialised and hold twice as many halves.
    let halves = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u16>(), 90) };
    assert!(halves.iter().enumerate().all(|(i, h)| *h as usize == i));
}

#[test]
fn operands_of_many_blocks_lie_across_or_repeat_a_strided_row() {
    let one = |order: [usize; 2], gap, expand| (order.to_vec(), gap, expand);
    // The last dimension is the outermost in memory; gaps between elements; the first dimension expanded.
    let dense = one([1, 0], 1, 0);
    check((vec![150, 300], [dense.clone(), one([0, 1], 1, 0), dense.clone(), one([0, 1], 2, 0)]));
    check((vec![3, 5000], [dense.clone(), one([1, 0], 2, 1), dense.clone(), one([1, 0], 2, 1)]));
    check((vec![70, 200], [one([0, 1], 2, 0), dense.clone(), one([1, 0], 2, 1), one([0, 1], 1, 0)]));
}

#[test]
fn an_element_for_each_index_of_a_dimension_and_one_for_all() {
    let sizes = [2i64, 3, 2];
    let mut a: Vec<f32> = (0..12).map(|i| i as f32).collect();
    // An input of every second element.
    let mut b = [10.0f32, -1.0, 20.0, -1.0, 30.0];
    let ta = tensor(a.as_mut_ptr(), &sizes, &row_major(&sizes));
    let tb = tensor(b.as_mut_ptr(), &[3], &[2]);
    let one = tensor(b.as_mut_ptr(), &[1], &[1]);
    // channels_last strides.
    for strides in [[6, 2, 1], [6, 1, 3]] {
        let mut o = [0.0f32; 12];
        let to = tensor(o.as_mut_ptr(), &sizes, &strides);
        for (weight, each) in [(&tb, [10.0, 20.0, 30.0]), (&one, [10.0; 3])] {
            with_call(&[arg(&ta), arg(weight)], &[&to], |call| {
                call.map2_wide_along::<f32, f32, f32>(1, Cost::Cheap, |a, b| a * b).unwrap();
            });
            for index in indices(&sizes) {
                let x = (index[0] * 6 + index[1] * 2 + index[2]) as f32;
                assert_eq!(o[at(&index, &strides)], x * each[index[1]], "{index:?} {strides:?}");
            }
        }
        for dim in [0, 7] {
            with_call(&[arg(&ta), arg(&tb)], &[&to], |call| {
                let refused = call.map2_wide_along::<f32, f32, f32>(dim, Cost::Cheap, |a, b| a * b);
                assert!(refused.unwrap_err().to_string().contains("one dimension of"), "{dim}");
            });
        }
    }
}
