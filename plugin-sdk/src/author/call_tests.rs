//! Tests each accessor with the right tag, with each wrong tag, and with an index past the end.

use super::call::Call;
use super::error::Error;
use super::testing::{arg, raw_arg, tensor, with_call};
use crate::abi::codes::{dtype, tag};

fn refused<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::InvalidArgument { .. }))
}

type Accessor = (u32, fn(&Call<'_>, usize) -> bool);

const ACCESSORS: [Accessor; 9] = [
    (tag::TENSOR, |c, i| refused(c.tensor(i))),
    (tag::TENSORS, |c, i| refused(c.tensors(i))),
    (tag::INT, |c, i| refused(c.int(i))),
    (tag::FLOAT, |c, i| refused(c.float(i))),
    (tag::BOOL, |c, i| refused(c.bool(i))),
    (tag::INTS, |c, i| refused(c.ints(i))),
    (tag::FLOATS, |c, i| refused(c.floats(i))),
    (tag::STR, |c, i| refused(c.str(i))),
    (tag::DTYPE, |c, i| refused(c.dtype(i))),
];

#[test]
fn each_accessor_takes_its_tag_and_refuses_the_others_and_the_end() {
    let mut data = [1.5f32, 2.5];
    let t = tensor(data.as_mut_ptr(), &[2], &[1]);
    let list = [std::ptr::from_ref(&t.raw)];
    let (ints, floats, text) = ([4i64, 5], [0.5f64], "mean");
    let args = [
        raw_arg(tag::NONE, 0, 0),
        arg(&t),
        raw_arg(tag::TENSORS, 1, list.as_ptr() as u64),
        raw_arg(tag::INT, 0, -3i64 as u64),
        raw_arg(tag::FLOAT, 0, 2.5f64.to_bits()),
        raw_arg(tag::BOOL, 0, 1),
        raw_arg(tag::INTS, 2, ints.as_ptr() as u64),
        raw_arg(tag::FLOATS, 1, floats.as_ptr() as u64),
        raw_arg(tag::STR, 4, text.as_ptr() as u64),
        raw_arg(tag::DTYPE, 0, dtype::I64 as u64),
        raw_arg(99, 0, 0),
    ];
    with_call(&args, &[], |call| {
        for (tag, refuses) in ACCESSORS {
            for (i, a) in args.iter().enumerate() {
                assert_eq!(refuses(call, i), a.tag != tag, "accessor of tag {tag} on argument {i}");
            }
            assert!(refuses(call, args.len()) && refuses(call, usize::MAX));
        }
        assert_eq!((call.n_args(), call.n_outputs()), (11, 0));
        assert_eq!((call.int(3).unwrap(), call.float(4).unwrap(), call.bool(5).unwrap()), (-3, 2.5, true));
        assert_eq!((call.ints(6).unwrap(), call.floats(7).unwrap()), (&ints[..], &floats[..]));
        assert_eq!((call.str(8).unwrap(), call.dtype(9).unwrap()), ("mean", dtype::I64));
        assert_eq!(call.tensors(2).unwrap().get(0).unwrap().sizes(), [2]);
        assert!(call.tensors(2).unwrap().get(1).is_none());
        assert!(call.optional_tensor(0).unwrap().is_none() && call.optional_tensor(1).unwrap().is_some());
        assert!(refused(call.optional_tensor(3)) && refused(call.is_none(11)));
        assert_eq!((call.scalar::<f32>(3).unwrap(), call.scalar::<i32>(4).unwrap()), (-3.0, 2));
        assert_eq!(call.scalar::<u8>(5).unwrap(), 1);
        assert!(refused(call.scalar::<f32>(1)) && refused(call.scalar::<f32>(11)));
        assert!(refused(call.view::<f64>(1)), "another dtype");
        assert!(refused(call.out::<f32>(0)) && refused(call.output(0)), "no such output");
        assert!(call.tensor(1).unwrap().component(0).is_err());
    });
}

#[test]
fn an_output_is_given_once_and_never_as_an_argument() {
    let (mut a, mut o) = ([1i32, 2, 3], [0i32; 3]);
    let (ta, to) = (tensor(a.as_mut_ptr(), &[3], &[1]), tensor(o.as_mut_ptr(), &[3], &[1]));
    with_call(&[arg(&ta)], &[&to], |call| {
        assert!(refused(call.out::<f32>(0)), "another dtype does not take it");
        let slice = call.view::<i32>(0).unwrap().as_slice().unwrap();
        let mut out = call.out::<i32>(0).unwrap();
        out.as_mut_slice().unwrap().copy_from_slice(slice);
        assert_eq!((out.get(&[2]), out.get(&[3]), out.get(&[0, 0])), (Some(3), None, None));
        assert!(out.set(&[3], 1).is_none());
        assert!(refused(call.out::<i32>(0)));
        assert!(refused(call.output(0).unwrap().view::<i32>()));
    });
    assert_eq!(o, a);
}

#[test]
fn dense_memory_is_a_slice_in_its_own_order() {
    let (mut a, mut o) = ([0i32, 1, 2, 3, 4, 5], [9i32; 6]);
    // Two rows and three columns, transposed.
    let ta = tensor(a.as_mut_ptr(), &[2, 3], &[1, 2]);
    let to = tensor(o.as_mut_ptr(), &[2, 3], &[1, 2]);
    with_call(&[arg(&ta)], &[&to], |call| {
        let view = call.view::<i32>(0).unwrap();
        assert!(view.as_slice().is_none());
        let slice = view.as_dense_slice().unwrap();
        assert_eq!(slice, [0, 1, 2, 3, 4, 5]);
        let mut out = call.out::<i32>(0).unwrap();
        out.as_dense_mut_slice().unwrap().copy_from_slice(slice);
        assert_eq!(out.get(&[1, 2]), view.get(&[1, 2]));
    });
    assert_eq!(o, a);
    // In-place calls return no slices.
    with_call(&[arg(&ta)], &[&ta], |call| {
        assert!(call.view::<i32>(0).unwrap().as_dense_slice().is_none());
        assert!(call.out::<i32>(0).unwrap().as_dense_mut_slice().is_none());
    });
    // Gaps, an expanded dimension, and elements that overlap.
    for (sizes, strides) in [([2, 2], [1, 3]), ([2, 3], [1, 0]), ([2, 2], [1, 1])] {
        let t = tensor(a.as_mut_ptr(), &sizes, &strides);
        with_call(&[arg(&t)], &[&t], |call| {
            assert!(call.view::<i32>(0).unwrap().as_dense_slice().is_none(), "{strides:?}");
            assert!(call.out::<i32>(0).unwrap().as_dense_mut_slice().is_none(), "{strides:?}");
        });
    }
    let none = tensor(o.as_mut_ptr(), &[0, 3], &[3, 1]);
    with_call(&[], &[&none], |call| {
        assert_eq!(call.out::<i32>(0).unwrap().as_dense_mut_slice().map(|s| s.len()), Some(0));
    });
}

#[test]
fn memory_that_the_host_cannot_reach_is_not_viewed() {
    let mut a = [1.0f32];
    let mut t = tensor(a.as_mut_ptr(), &[1], &[1]);
    t.raw.device = 63;
    with_call(&[arg(&t)], &[], |call| assert!(refused(call.view::<f32>(0))));
    t.raw.flags |= crate::abi::codes::tensor_flag::HOST_SCALAR;
    with_call(&[arg(&t)], &[], |call| assert_eq!(call.view::<f32>(0).unwrap().get(&[0]), Some(1.0)));
    t.raw.device = 0;
    t.raw.data = std::ptr::null_mut();
    with_call(&[arg(&t)], &[], |call| assert!(refused(call.view::<f32>(0)), "a rule sees no data"));
}

#[test]
fn chunks_cover_a_slice_without_a_host() {
    let mut a = [0usize; 10];
    super::parallel_chunks_mut(&mut a, 4, |i, part| part.fill(i + 1)).unwrap();
    assert_eq!(a, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
}
