//! Counts that a dtype cannot represent, and sums of enough addends for another one to be lost.

use super::{gradient, leaf, of, values};
use keyway::nn::{BagMode, BagOptions};
use keyway::tensor::Reduce;
use keyway::{DType, Result, Tensor};

const HALVES: [DType; 2] = [DType::F16, DType::BF16];
/// Above the range of f16, and not representable in bf16.
const MANY: usize = 70_000;

#[test]
fn a_gradient_is_shared_among_more_equals_than_the_dtype_counts() -> Result<()> {
    for dtype in HALVES {
        let share = values(&of(&[1.0 / MANY as f64], dtype))[0];
        let x = Tensor::ones_with(MANY, dtype)?.requires_grad_(true)?;
        for y in [x.amax(0)?, x.amin(..)?, x.aminmax(0)?.1] {
            assert!(gradient(&y, &x).iter().all(|g| *g == share), "{dtype}");
        }
        let table = Tensor::ones_with((MANY, 2), dtype)?.requires_grad_(true)?;
        assert!(gradient(&table.amax_keepdim(0)?, &table).iter().all(|g| *g == share), "{dtype}");

        let at = Tensor::zeros_with(MANY, DType::I64)?;
        for reduce in [Reduce::Amax, Reduce::Amin, Reduce::Mean] {
            for include in [false, true] {
                let share = values(&of(&[1.0 / (MANY + usize::from(include)) as f64], dtype))[0];
                let own = leaf(&[1.0, 3.0], dtype);
                let made = [
                    own.scatter_reduce_with(0, &at, &x, reduce, include)?,
                    own.index_reduce_with(0, &at, &x, reduce, include)?,
                ];
                for y in made {
                    assert_eq!(values(&y.detach()), [1.0, 3.0], "{dtype} {}", reduce.name());
                    let first = if include { share } else { 0.0 };
                    assert_eq!(gradient(&y, &own), [first, 1.0], "{dtype} {}", reduce.name());
                    let of_src = values(&x.grad().unwrap());
                    assert!(of_src.iter().all(|g| *g == share), "{dtype} {}", reduce.name());
                    x.zero_grad();
                }
            }
        }
    }
    Ok(())
}

#[test]
fn index_reduce_in_place_has_the_gradients_of_the_other_form() -> Result<()> {
    let at = Tensor::new([2i64, 0, 2, 2])?;
    let factors = of(&[1.0, -2.0, 0.5], DType::F64);
    for reduce in [Reduce::Prod, Reduce::Mean, Reduce::Amax, Reduce::Amin] {
        for include in [false, true] {
            let own = leaf(&[0.5, 3.0, -1.5], DType::F64);
            let source = leaf(&[2.0, -0.75, 0.0, 2.0], DType::F64);
            let run = |in_place: bool| -> Result<[Vec<f64>; 3]> {
                let made = if in_place {
                    let copy = own.mul(2)?;
                    copy.index_reduce_with_(0, &at, &source, reduce, include)?;
                    copy
                } else {
                    own.mul(2)?.index_reduce_with(0, &at, &source, reduce, include)?
                };
                made.mul(&factors)?.sum_all()?.backward()?;
                let grads = [&own, &source].map(|t| values(&t.grad().unwrap()));
                own.zero_grad();
                source.zero_grad();
                let [first, second] = grads;
                Ok([values(&made.detach()), first, second])
            };
            assert_eq!(run(true)?, run(false)?, "{} {include}", reduce.name());
        }
    }
    Ok(())
}

#[test]
fn integers_are_near_by_their_exact_difference() -> Result<()> {
    let near = |a: &Tensor, b: &Tensor, rtol: f64, atol: f64| -> Result<Vec<bool>> {
        a.isclose_with(b, rtol, atol, false)?.to_vec::<bool>()
    };
    let (a, b) = (Tensor::new([16_777_217i32, 16_777_217, 7])?, Tensor::new([16_777_216i32, 16_777_217, 9])?);
    assert_eq!(near(&a, &b, 0.0, 0.0)?, [false, true, false]);
    assert_eq!(near(&a, &b, 0.0, 1.0)?, [true, true, false]);
    assert!(!a.allclose_with(&b, 0.0, 0.5, false)?);
    let far = 1i64 << 60;
    let (a, b) = (Tensor::new([far + 1, i64::MAX, i64::MIN])?, Tensor::new([far, i64::MIN, i64::MIN])?);
    assert_eq!(near(&a, &b, 0.0, 0.0)?, [false, false, true]);
    assert_eq!(near(&a, &b, 0.0, 1.0)?, [true, false, true]);
    assert_eq!(near(&a, &b, 1e-5, 0.0)?, [true, false, true]);
    let (a, b) = (Tensor::new([u64::MAX, 0u64])?, Tensor::new([u64::MAX - 1, u64::MAX])?);
    assert_eq!(near(&a, &b, 0.0, 0.0)?, [false, false]);
    assert_eq!(near(&a, &b, 0.0, 1.0)?, [true, false]);
    let small = Tensor::new([3u8, 250])?;
    assert_eq!(small.isclose_with(-1, 0.0, 4.0, false)?.to_vec::<bool>()?, [true, false]);
    let truths = Tensor::new([true, false])?;
    assert_eq!(near(&truths, &Tensor::new([true, true])?, 0.0, 0.5)?, [true, false]);
    Ok(())
}

/// Ones that are added to the largest number from which on f32 holds no odd ones.
const ONES: usize = 3_000;
const LARGE: f64 = 16_777_216.0;

/// Large values, and many ones to add at one index, in each of `columns` columns.
fn large(columns: usize) -> Result<[Tensor; 3]> {
    let own = Tensor::full_with((12, columns), LARGE, DType::F32)?;
    let at = Tensor::full_with(ONES, 4, DType::I64)?;
    Ok([own, at, Tensor::ones_with((ONES, columns), DType::F32)?])
}

#[track_caller]
fn one_row_is_larger(made: &Tensor, columns: usize) {
    for (nth, value) in values(made).into_iter().enumerate() {
        let more = if nth / columns == 4 { ONES as f64 } else { 0.0 };
        assert_eq!(value, LARGE + more, "element {nth} of {columns} columns");
    }
}

#[test]
fn no_addend_at_one_index_is_lost() -> Result<()> {
    for columns in [1, 3, 40, 700] {
        let [own, at, ones] = large(columns)?;
        one_row_is_larger(&own.index_add(0, &at, &ones)?, columns);
        one_row_is_larger(&own.index_add_with(0, &at, &ones.mul(-1)?, -1)?, columns);
        let each = at.unsqueeze(1)?.expand((ONES, columns))?;
        one_row_is_larger(&own.scatter_add(0, &each, &ones)?, columns);
        one_row_is_larger(&own.scatter_add(0, &each.contiguous()?, &ones)?, columns);
        one_row_is_larger(&own.index_put_with(&[Some(&at)], &ones, true)?, columns);
        let transposed = own.t()?.contiguous()?;
        one_row_is_larger(&transposed.index_add(1, &at, &ones.t()?)?.t()?.contiguous()?, columns);
        let changed = own.copy()?;
        changed.index_add_(0, &at, &ones)?;
        one_row_is_larger(&changed, columns);
        // Two indices for each element.
        let column = Tensor::zeros_with(ONES, DType::I64)?;
        let flat = own.narrow(1, 0, 1)?.contiguous()?;
        let row = Tensor::ones(ONES)?;
        let made = flat.index_put_with(&[Some(&at), Some(&column)], &row, true)?;
        one_row_is_larger(&made, 1);
    }
    // More rows than counters: no counter for each row.
    let own = Tensor::full_with(70_000, LARGE, DType::F32)?;
    let mut at: Vec<i64> = (0..20_000).map(|j| j * 7 % 70_000).collect();
    at.extend(vec![69_999; ONES]);
    let ones = Tensor::ones(at.len())?;
    let made = values(&own.scatter_add(0, &Tensor::new(at.as_slice())?, &ones)?);
    assert_eq!(made[69_999], LARGE + ONES as f64);
    Ok(())
}

#[test]
fn gradients_of_what_is_read_many_times_are_whole() -> Result<()> {
    let at = Tensor::full_with(ONES, 1, DType::I64)?;
    let weight = Tensor::ones((3, 5))?.requires_grad_(true)?;
    // The first gradient of each row is large, the others are 1.
    let mut scale = vec![1.0f32; ONES];
    scale[0] = LARGE as f32;
    let scale = Tensor::new(scale.as_slice())?;
    let wanted = LARGE + (ONES - 1) as f64;
    // Half an ULP of f32 at that magnitude.
    let whole = |grads: Vec<f64>| grads[5..10].iter().all(|g| (g - wanted).abs() <= 1.0);
    let by_row = scale.unsqueeze(1)?;
    assert!(whole(gradient(&weight.embedding(&at)?.mul(&by_row)?, &weight)));
    assert!(whole(gradient(&weight.index_select(0, &at)?.mul(&by_row)?, &weight)));
    let each = at.unsqueeze(1)?.expand((ONES, 5))?;
    assert!(whole(gradient(&weight.gather(0, &each)?.mul(&by_row)?, &weight)));
    assert!(whole(gradient(&weight.i(&at)?.mul(&by_row)?, &weight)));
    Ok(())
}

#[test]
fn a_long_bag_is_added_by_blocks() -> Result<()> {
    let rows = 60_000;
    for (columns, dtype) in [(64, DType::F32), (5, DType::F32), (64, DType::BF16)] {
        let weight = Tensor::cat(
            &[Tensor::full_with((1, columns), LARGE, dtype)?, Tensor::ones_with((1, columns), dtype)?],
            0,
        )?;
        let mut at = vec![1i64; rows];
        at[0] = 0;
        let at = Tensor::new(at.as_slice())?.reshape((1, rows))?;
        let options = BagOptions { mode: BagMode::Sum, ..Default::default() };
        let made = values(&weight.embedding_bag_with(&at, options)?);
        let wanted = LARGE + (rows - 1) as f64;
        // The error bound of 1024 additions in f32, plus the rounding of bf16.
        let share = if dtype == DType::BF16 { 1.0 / 256.0 } else { 1024.0 / LARGE };
        assert!(made.iter().all(|sum| (sum - wanted).abs() <= share * wanted), "{dtype} {}", made[0]);
    }
    Ok(())
}
