//! Numbers at the ends of their types as sizes, places, widths and counts: an error that names the op, or what the rule says, and
//! never the number that they wrap to.

use keyway::tensor::StepBy;
use keyway::{DType, Result, Tensor, num_threads, set_num_threads};

fn three() -> Tensor {
    Tensor::new([1.0f32, 2.0, 3.0]).unwrap()
}

/// The text of an error that begins with the op's name and holds `part`.
fn refused<T>(op: &str, part: &str, made: Result<T>) {
    let Err(error) = made else { panic!("{op}: no error") };
    let text = error.to_string();
    assert!(text.contains(op) && text.contains(part), "{op}, {part}: {text}");
}

#[test]
fn padding_takes_no_more_off_than_is_there() {
    let x = three();
    for widths in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (-4, 4), (-4, 1), (5, -5), (-2, -2)] {
        refused("pad", "off dimension 0", x.pad(widths));
    }
    refused("pad", "off dimension 0", Tensor::zeros(1).unwrap().pad((i64::MIN, i64::MAX)));
    for mode in [keyway::nn::PadMode::Replicate, keyway::nn::PadMode::Reflect, keyway::nn::PadMode::Circular]
    {
        refused("pad", "", x.pad_with((-5, 5), mode, 0.0));
    }
    assert_eq!(x.pad((-3, 2)).unwrap().to_vec::<f32>().unwrap(), [0.0; 2]);
    assert_eq!(x.pad((-1, 2)).unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0, 0.0, 0.0]);
    assert!(x.pad((i64::MAX, 0)).is_err());
    assert!(x.pad((i64::MAX, i64::MAX)).is_err());
}

#[test]
fn bounds_of_slices_beyond_i64_are_beyond_the_dimension() {
    let x = three();
    let all = [1.0, 2.0, 3.0];
    let sliced = |made: Result<Tensor>| made.unwrap().to_vec::<f32>().unwrap();
    assert!(sliced(x.i(usize::MAX..)).is_empty());
    assert_eq!(sliced(x.i(..usize::MAX)), all);
    assert_eq!(sliced(x.i(..u64::MAX)), all);
    assert_eq!(sliced(x.i(..=usize::MAX)), all);
    assert_eq!(sliced(x.i(1..usize::MAX)), [2.0, 3.0]);
    assert_eq!(sliced(x.i(..(1usize << 63))), all);
    assert_eq!(sliced(x.i(StepBy(..usize::MAX, 2))), [1.0, 3.0]);
}

#[test]
fn counts_that_no_memory_holds_are_errors() {
    let x = three();
    for repeats in [[i64::MAX, i64::MAX, 5], [i64::MAX, i64::MAX, 2], [i64::MAX, 1, 1]] {
        let repeats = Tensor::new(repeats).unwrap();
        refused("repeat_interleave_each", "of each", x.repeat_interleave_each(&repeats, 0));
    }
    for count in [usize::MAX, 1 << 62, 1 << 50] {
        refused("", "out of memory", Tensor::randperm(count));
    }
    let wide = Tensor::zeros(1).unwrap().expand(1usize << 50).unwrap();
    refused("", "out of memory", wide.split(1, 0));
    refused("", "out of memory", wide.unbind(0));
    refused("", "out of memory", Tensor::zeros((1usize << 50, 0)).unwrap().chunk(1 << 50, 0));
    refused("", "out of memory", x.tensor_split(1 << 60, 0));
    refused("split_sizes", "9223372036854775807", x.split_sizes(&[usize::MAX, 4], 0));
}

#[test]
fn places_of_a_triangle_are_counted_first() {
    let count = |rows: usize, columns: usize, offset: i64| {
        let inside = |below: bool| {
            let places = (0..rows as i64).flat_map(|row| (0..columns as i64).map(move |column| column - row));
            places.filter(|&at| if below { at <= offset } else { at >= offset }).count()
        };
        let lower = Tensor::tril_indices_with(rows, columns, offset, ()).unwrap();
        let upper = Tensor::triu_indices_with(rows, columns, offset, ()).unwrap();
        assert_eq!((lower.shape(), upper.shape()), (&[2, inside(true)][..], &[2, inside(false)][..]));
    };
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (4, 4)] {
        (-6..=6).for_each(|offset| count(rows, columns, offset));
    }
    for size in [1usize << 24, 1 << 40, usize::MAX] {
        refused("tril_indices", "memory holds", Tensor::tril_indices(size, size));
        refused("triu_indices", "memory holds", Tensor::triu_indices(size, size));
    }
}

#[test]
fn what_is_wrong_is_what_is_said_to_be() {
    let integers = Tensor::arange(0, 3).unwrap();
    refused("bitwise_and", "`other` must be integers", integers.bitwise_and(0.5));
    refused("bitwise_left_shift", "`other` must be integers", integers.bitwise_left_shift(0.5));
    refused("empty_strided", "`strides` must be", Tensor::empty_strided((2, 3), (-1, 1)));
}

#[test]
fn random_integers_are_finite() {
    refused("", "largest f16", Tensor::randint_with(0, 100_000, 3, DType::F16));
    let most = Tensor::randint_with(65_504, 65_505, 3, DType::F16).unwrap();
    assert_eq!(most.to_vec_f64().unwrap(), [65_504.0; 3]);
}

#[test]
fn as_many_threads_as_are_of_use() {
    set_num_threads(usize::MAX);
    assert!(num_threads() < 100_000);
    let x = Tensor::ones((600, 600)).unwrap();
    assert_eq!(x.sum_all().unwrap().item::<f32>().unwrap(), 360_000.0);
    set_num_threads(0);
}
