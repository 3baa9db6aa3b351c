//! Scalars instead of tensors: values that the dtype cannot represent, and values that it rounds.

use super::{of, values};
use keyway::MemoryFormat;
use keyway::{DType, Result, Tensor};
use keyway_dispatcher::op::Arg;

fn bytes(values: &[i8]) -> Tensor {
    Tensor::new(values).unwrap()
}

#[test]
fn a_number_that_the_dtype_does_not_hold_is_not_stored() -> Result<()> {
    let (x, mask) = (bytes(&[1, 2]), Tensor::new([true, false])?);
    let at = Tensor::new([0i64])?;
    for wrong in
        [Arg::Int(300), Arg::Int(-129), Arg::Float(f64::INFINITY), Arg::Float(f64::NAN), Arg::Float(128.0)]
    {
        let results = [
            x.fill_(wrong),
            x.masked_fill(&mask, wrong),
            x.masked_fill_(&mask, wrong),
            x.constant_pad(&[1, 1], wrong),
            x.scatter(0, &at, wrong),
            x.scatter_(0, &at, wrong),
            x.index_copy(0, &at, wrong),
            x.index_put_(&[Some(&at)], wrong),
            Tensor::full_with([2], wrong, DType::I8),
            x.new_full([2], wrong),
        ];
        for result in results {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("a number that i8 holds, from -128 to 127"), "{text}");
        }
        assert_eq!(x.to_vec::<i8>()?, [1, 2]);
    }
    let text = mask.where_cond(&x, 300).unwrap_err().to_string();
    assert!(text.contains("where_cond: `b`") && text.contains("the integer 300"), "{text}");
    assert!(mask.where_cond(300, &x).is_err());
    // A float with integers promotes, as in PyTorch; what a dtype holds is stored; fractions are left away.
    assert_eq!(values(&mask.where_cond(&x, f64::INFINITY)?), [1.0, f64::INFINITY]);
    assert_eq!(x.masked_fill(&mask, -128)?.to_vec::<i8>()?, [-128, 2]);
    assert_eq!(x.masked_fill(&mask, 127.9)?.to_vec::<i8>()?, [127, 2]);
    assert_eq!(Tensor::full_with([1], i64::MAX, DType::U64)?.to_vec::<u64>()?, [i64::MAX as u64]);
    assert!(Tensor::full_with([1], -1, DType::U64).is_err());
    assert_eq!(Tensor::full_with([1], 300, DType::BOOL)?.to_vec::<bool>()?, [true]);
    Ok(())
}

#[test]
fn bounds_beyond_the_dtype_hold_nothing_back() -> Result<()> {
    let x = bytes(&[-128, -5, 0, 100, 127]);
    assert_eq!(x.clamp(-300, 300)?.to_vec::<i8>()?, [-128, -5, 0, 100, 127]);
    assert_eq!(x.clamp_max(300)?.to_vec::<i8>()?, [-128, -5, 0, 100, 127]);
    assert_eq!(x.clamp(-1, i64::MAX)?.to_vec::<i8>()?, [-1, -1, 0, 100, 127]);
    let unsigned = Tensor::new([0u64, u64::MAX])?;
    assert_eq!(unsigned.clamp_min(-1)?.to_vec::<u64>()?, [0, u64::MAX]);
    let unsigned = Tensor::new([0u8, 200])?;
    assert_eq!(unsigned.clamp(-300, 256)?.to_vec::<u8>()?, [0, 200]);
    let text = x.clamp_min(300).unwrap_err().to_string();
    assert!(text.contains("at most 127, the largest i8"), "{text}");
    assert!(x.clamp_max(-300).is_err() && x.maximum(300).is_err() && x.minimum(-300).is_err());
    Ok(())
}

#[test]
fn comparisons_with_numbers_beyond_the_dtype_are_right() -> Result<()> {
    let x = bytes(&[44, -1]);
    assert_eq!(x.eq(300)?.to_vec::<bool>()?, [false, false]);
    assert_eq!(x.ne(255)?.to_vec::<bool>()?, [true, true]);
    assert_eq!(x.lt(300)?.to_vec::<bool>()?, [true, true]);
    assert_eq!(x.ge(-200)?.to_vec::<bool>()?, [true, true]);
    assert_eq!(x.gt(i64::MAX)?.to_vec::<bool>()?, [false, false]);
    let unsigned = Tensor::new([0u64, u64::MAX])?;
    assert_eq!(unsigned.gt(-1)?.to_vec::<bool>()?, [true, true]);
    assert_eq!(unsigned.eq(-1)?.to_vec::<bool>()?, [false, false]);
    Ok(())
}

#[test]
fn divisors_and_exponents_beyond_the_dtype_are_refused() -> Result<()> {
    let x = bytes(&[100, 3]);
    for result in [x.remainder(300), x.fmod(300), x.floor_divide(300), x.pow(300), x.rpow(300)] {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("a number that i8 holds"), "{text}");
    }
    // Sums and products are modulo 2^8, and so is a number.
    assert_eq!(x.add(300)?.to_vec::<i8>()?, [-112, 47]);
    assert_eq!(x.mul(300)?.to_vec::<i8>()?, [48, -124]);
    Ok(())
}

/// `f` of each value in f32, rounded once.
fn once(x: &[f32], dtype: DType, f: impl Fn(f32) -> f32) -> Vec<f64> {
    values(&of(&x.iter().map(|&x| f64::from(f(x))).collect::<Vec<_>>(), dtype))
}

#[test]
fn a_number_meets_narrow_floats_as_it_is() -> Result<()> {
    let x = [3.0f32, 7.0, 1000.0, 5.0];
    for dtype in [DType::F16, DType::BF16] {
        let t = of(&x.map(f64::from), dtype);
        // Also if elements are strided, and in place.
        let turned = Tensor::empty_with([1, 4, 1, 1], dtype)?.to(MemoryFormat::ChannelsLast)?;
        turned.copy_(&t.reshape([1, 4, 1, 1])?)?;
        let same = |made: Tensor, f: fn(f32) -> f32, what: &str| {
            assert_eq!(values(&made), once(&x, dtype, f), "{what} of {dtype}");
        };
        same(t.mul(0.1)?, |x| x * 0.1, "mul");
        same(turned.mul(0.1)?.flatten(0, -1)?, |x| x * 0.1, "mul");
        same(t.copy()?.mul_(0.1)?, |x| x * 0.1, "mul_");
        same(t.add(0.1)?, |x| x + 0.1, "add");
        same(t.sub(0.1)?, |x| x - 0.1, "sub");
        same(t.rsub(0.1)?, |x| 0.1 - x, "rsub");
        same(t.add_with(0.1, 3.3)?, |x| x + 3.3 * 0.1, "add with alpha");
        same(t.div(0.3)?, |x| x / 0.3, "div");
        same(t.rdiv(0.1)?, |x| 0.1 / x, "rdiv");
        same(t.floor_divide(0.1)?, |x| (f64::from(x) / f64::from(0.1f32)).floor() as f32, "floor_divide");
        same(t.fmod(0.3)?, |x| x % 0.3, "fmod");
        same(t.remainder(0.3)?, |x| x % 0.3, "remainder");
        same(t.lerp(&t.mul(2)?, 0.1)?, |x| x + 0.1 * x, "lerp");
        let power = values(&t.pow(2.3)?);
        let expected = once(&x, dtype, |x| f64::from(x).powf(2.3) as f32);
        assert_eq!(power, expected, "pow of {dtype}");
        let angle = values(&t.atan2(0.1)?);
        assert_eq!(angle, once(&x, dtype, |x| f64::from(x).atan2(0.1) as f32), "atan2 of {dtype}");
    }
    Ok(())
}

/// With a gradient a loss is composed of other ops, whose sums must not be rounded to the dtype.
#[test]
fn a_mean_loss_has_more_targets_than_f16_counts() -> Result<()> {
    let n = 70_003;
    let target = Tensor::full_with([n], 0, DType::I64)?;
    let x = Tensor::full_with([n, 2], 4.0, DType::F16)?.requires_grad_(true)?;
    let loss = x.nll_loss(&target)?;
    assert_eq!((loss.dtype(), values(&loss)), (DType::F16, vec![-4.0]));
    let loss = x.cross_entropy(&target)?;
    assert!((values(&loss)[0] - 2f64.ln()).abs() < 1e-3, "{loss}");
    loss.backward()?;
    let slope = values(&x.grad().unwrap())[0];
    assert!((slope * -2.0 * n as f64 - 1.0).abs() < 0.05, "{slope}");
    Ok(())
}

#[test]
fn a_number_may_be_the_first_operand_of_bitwise_ops() -> Result<()> {
    let x = bytes(&[1, 2]);
    let of = |op: &str, first: Arg<'_>, second: &Tensor| -> Result<Tensor> {
        Ok(keyway::ops::by_name::call(op, &[first, second.into()])?.remove(0))
    };
    assert_eq!(of("bitwise_left_shift", Arg::Int(1), &x)?.to_vec::<i8>()?, [2, 4]);
    assert_eq!(of("bitwise_right_shift", Arg::Int(8), &x)?.to_vec::<i8>()?, [4, 2]);
    assert_eq!(of("bitwise_and", Arg::Int(3), &x)?.to_vec::<i8>()?, [1, 2]);
    let mask = Tensor::new([true, false])?;
    assert_eq!(of("bitwise_or", Arg::Bool(false), &mask)?.to_vec::<bool>()?, [true, false]);
    let text = of("bitwise_xor", Arg::Float(1.5), &x).unwrap_err().to_string();
    assert!(text.contains("`self`"), "{text}");
    Ok(())
}
