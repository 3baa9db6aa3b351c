use super::*;
use keyway_sdk::author::Element;

fn check<T: Lanes<Acc = f32> + std::fmt::Debug>(from_bits: impl Fn(u16) -> T, bits: impl Fn(T) -> u16) {
    let lanes = T::Vector::LANES;
    let all: Vec<T> = (0..=u16::MAX).map(&from_bits).collect();
    let mut wide = vec![0f32; all.len()];
    for (to, from) in wide.chunks_exact_mut(lanes).zip(all.chunks_exact(lanes)) {
        // SAFETY: both have the lanes of a vector.
        unsafe { T::read(from.as_ptr()).store(to.as_mut_ptr()) };
    }
    for (wide, element) in wide.iter().zip(&all) {
        assert!(wide.to_bits() == element.to_acc().to_bits() || wide.is_nan(), "{wide} of {element:?}");
    }
    // Each element, the midpoint to the next one, and the midpoint's neighbours.
    let between = wide.windows(2).flat_map(|pair| {
        let middle = ((f64::from(pair[0]) + f64::from(pair[1])) / 2.0) as f32;
        [pair[0], middle, middle.next_up(), middle.next_down(), -middle]
    });
    let extremes = [f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xff80_0001), f32::MAX, f32::MIN];
    let numbers: Vec<f32> = between.chain(extremes).collect();
    for numbers in numbers.chunks(lanes) {
        let mut narrow = vec![from_bits(0); lanes];
        // SAFETY: both vectors have the elements.
        unsafe {
            let vector: T::Vector = load_some(numbers.as_ptr(), numbers.len());
            write_some(narrow.as_mut_ptr(), 1, numbers.len(), vector);
        }
        for (&narrow, &number) in narrow.iter().zip(numbers) {
            let expected = T::from_acc(number);
            let nan = number.is_nan() && narrow.to_acc().is_nan();
            assert!(nan || bits(narrow) == bits(expected), "{narrow:?} of {number:e}, not {expected:?}");
        }
    }
}

#[test]
fn vectors_are_widened_and_rounded_as_single_elements_are() {
    check(bf16::from_bits, bf16::to_bits);
    check(f16::from_bits, f16::to_bits);
}

#[test]
fn the_largest_is_found_wherever_it_is() {
    for n in [1, 5, 16, 63, 64, 65, 200] {
        for at in 0..n {
            let mut values: Vec<f32> = (0..n).map(|i| -1.0 - (i % 7) as f32).collect();
            values[at] = -0.5;
            assert_eq!(largest(&values), -0.5, "{at} of {n}");
        }
    }
    assert_eq!(largest(&[f64::NEG_INFINITY; 20]), f64::NEG_INFINITY);
}

#[test]
fn strided_elements_are_read_and_written_alone() {
    let from: Vec<f64> = (0..40).map(f64::from).collect();
    let mut to = vec![-1.0; 40];
    let n = <f64 as Lanes>::Vector::LANES - 1;
    // SAFETY: both vectors have more than `n` elements at these strides.
    let total = unsafe {
        let vector = read_some(from.as_ptr(), 3, n);
        write_some(to.as_mut_ptr(), 2, n, vector);
        sum(vector, vector)
    };
    assert_eq!(total, (0..n).map(|i| 6.0 * i as f64).sum::<f64>());
    for (i, &value) in to.iter().enumerate() {
        assert_eq!(value, if i % 2 == 0 && i / 2 < n { 1.5 * i as f64 } else { -1.0 });
    }
}

fn check_few<T: Lanes>() {
    let all: Vec<T> = (0..40).map(|i| T::from_f64(f64::from(i) + 1.0)).collect();
    for n in 0..=T::Vector::LANES {
        let (mut wide, mut to) = (vec![T::Acc::ONE; T::Vector::LANES], vec![T::from_f64(-1.0); 40]);
        // SAFETY: the vectors have more than `n` elements, and `wide` one per lane.
        unsafe {
            let vector = T::read_few(all.as_ptr(), n);
            vector.store(wide.as_mut_ptr());
            T::write_few(to.as_mut_ptr(), n, vector);
        }
        for (i, x) in wide.iter().enumerate() {
            assert_eq!(x.to_f64(), if i < n { i as f64 + 1.0 } else { 0.0 }, "{} {n}", T::NAME);
        }
        let expected = |i: usize| if i < n { i as f64 + 1.0 } else { -1.0 };
        assert!((0..40).all(|i| to[i].to_acc().to_f64() == expected(i)), "{} {n}", T::NAME);
    }
}

#[test]
fn few_elements_are_read_and_written_and_none_beyond() {
    check_few::<f32>();
    check_few::<f64>();
    check_few::<f16>();
    check_few::<bf16>();
}

fn check_picks<V: Vector>() {
    let lanes = V::LANES;
    let numbers: Vec<V::Number> = (0..2 * lanes).map(|i| V::Number::from_f64(i as f64)).collect();
    let at: Vec<i32> = (0..lanes).map(|i| (i * 7 % (2 * lanes)) as i32).collect();
    let mut made = vec![V::Number::ZERO; lanes];
    // SAFETY: there are the values of two vectors, and one index per lane.
    unsafe {
        let (low, high) = (V::load(numbers.as_ptr()), V::load(numbers.as_ptr().add(lanes)));
        low.pick(high, at.as_ptr()).store(made.as_mut_ptr());
    }
    assert!(made.iter().zip(&at).all(|(x, at)| x.to_f64() == f64::from(*at)));
}

#[test]
fn numbers_are_picked_from_two_vectors() {
    check_picks::<<f32 as Lanes>::Vector>();
    check_picks::<<f64 as Lanes>::Vector>();
}
