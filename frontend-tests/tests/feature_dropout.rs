//! Dropout of whole channels, and dropout that keeps mean and variance: methods that are composed of ops, so no suite judges
//! them but this.

mod rehearsal_support;

use keyway::rng::{self, Generator};
use keyway::{DType, MemoryFormat, Result, Tensor};
use rehearsal_support::load;

const LAST: MemoryFormat = MemoryFormat::ChannelsLast;
/// The negated limit of `selu`: alpha times scale (Klambauer and others, "Self-Normalizing Neural Networks", 2017).
const FLOOR: f64 = 1.050_700_987_355_480_5 * 1.673_263_242_354_377_2;

type Drop = fn(&Tensor, f64, bool) -> Result<Tensor>;
/// Sizes, and how many leading dimensions count channels.
type Images = (&'static [usize], usize);

/// The method, its name, sizes that it takes with how many leading dimensions count channels, and a number of dimensions that it
/// refuses.
const OF_CHANNELS: [(&str, Drop, [Images; 2], usize); 3] = [
    ("dropout1d", |x, p, on| x.dropout1d(p, on), [(&[4, 30, 5], 2), (&[90, 5], 1)], 4),
    ("dropout2d", |x, p, on| x.dropout2d(p, on), [(&[4, 30, 3, 2], 2), (&[4, 30, 5], 2)], 5),
    ("dropout3d", |x, p, on| x.dropout3d(p, on), [(&[4, 30, 2, 3, 2], 2), (&[90, 2, 3, 2], 1)], 3),
];

/// Values from 1 to 2, so that none is 0.
fn numbers(sizes: &[usize]) -> Result<Tensor> {
    let number = |i: usize| 1.0 + (i * 7 % 64) as f64 / 64.0;
    Tensor::from_vec((0..sizes.iter().product()).map(number).collect(), sizes)
}

fn seeded(seed: u64, run: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    rng::with_generator(&Generator::new(seed), run)
}

/// Refuses another share of dropped ones than chance explains: five deviations.
#[track_caller]
fn assert_share(dropped: usize, of: usize, p: f64) {
    let (n, deviation) = (of as f64, (of as f64 * p * (1.0 - p)).sqrt());
    assert!((dropped as f64 - n * p).abs() <= 5.0 * deviation, "{dropped} of {of} at {p}");
}

#[test]
fn channels_are_dropped_as_a_whole_with_their_gradients() -> Result<()> {
    let _guard = load(&[]);
    for (name, drop, cases, _) in OF_CHANNELS {
        for (sizes, lead) in cases {
            let channels: usize = sizes[..lead].iter().product();
            let each = sizes[lead..].iter().product::<usize>();
            for p in [0.1, 0.5, 0.8] {
                let x = numbers(sizes)?.requires_grad_(true)?;
                let y = seeded(5, || drop(&x, p, true))?;
                assert_eq!((y.shape(), y.dtype()), (sizes, DType::F64), "{name}");
                y.mul(3.0)?.sum_all()?.backward()?;
                let [x_, y_, g] = [x.detach(), y.detach(), x.grad().unwrap()].map(|t| t.to_vec_f64());
                let (x_, y_, g) = (x_?, y_?, g?);
                let mut dropped = 0;
                for c in 0..channels {
                    let own = c * each..(c + 1) * each;
                    let is_dropped = y_[own.start] == 0.0;
                    dropped += usize::from(is_dropped);
                    let factor = if is_dropped { 0.0 } else { 1.0 / (1.0 - p) };
                    for i in own {
                        assert!(
                            (y_[i] - x_[i] * factor).abs() < 1e-14,
                            "{name} {sizes:?} {p}: {} at {i}",
                            y_[i]
                        );
                        assert!(
                            (g[i] - 3.0 * factor).abs() < 1e-14,
                            "{name} {sizes:?} {p}: gradient {}",
                            g[i]
                        );
                    }
                }
                assert_share(dropped, channels, p);
                // The same state drops the same elements, another state drops others.
                assert_eq!(seeded(5, || drop(&x, p, true))?.detach().to_vec_f64()?, y_, "{name}");
                assert_ne!(seeded(6, || drop(&x, p, true))?.detach().to_vec_f64()?, y_, "{name}");
            }
        }
    }
    Ok(())
}

#[test]
fn formats_and_dtypes_stay_and_drop_the_same_channels() -> Result<()> {
    let _guard = load(&[]);
    for (name, drop, cases, _) in OF_CHANNELS {
        for (sizes, _) in cases.into_iter().filter(|(sizes, lead)| *lead == 2 && sizes.len() > 2) {
            let x = numbers(sizes)?;
            let rows = seeded(2, || drop(&x, 0.5, true))?;
            let last = seeded(2, || drop(&x.to(LAST)?, 0.5, true))?;
            assert!(last.is_contiguous_in(LAST), "{name}: {:?}", last.strides());
            assert_eq!(rows.to_vec_f64()?, last.to_vec_f64()?, "{name}");
            for dtype in [DType::F16, DType::BF16, DType::F32] {
                // Divided in f32 and rounded once.
                let narrow = x.to_dtype(dtype)?;
                let y = seeded(2, || drop(&narrow, 0.5, true))?;
                assert_eq!(y.dtype(), dtype, "{name}");
                assert_eq!(y.to_vec_f64()?, rows.to_vec_f64()?, "{name} {dtype}: doubling is exact");
            }
        }
    }
    Ok(())
}

#[test]
fn nothing_and_everything_can_be_dropped() -> Result<()> {
    let _guard = load(&[]);
    for (name, drop, [(sizes, _), _], refused) in OF_CHANNELS {
        let x = numbers(sizes)?;
        let zeros = vec![0.0; x.elem_count()];
        assert!(drop(&x, 0.0, true)?.ptr_eq(&x) && drop(&x, 0.7, false)?.ptr_eq(&x), "{name}");
        assert_eq!(drop(&x, 1.0, true)?.to_vec_f64()?, zeros, "{name}");
        let leaf = x.detach().requires_grad_(true)?;
        drop(&leaf, 1.0, true)?.sum_all()?.backward()?;
        assert_eq!(leaf.grad().unwrap().to_vec_f64()?, zeros, "{name}: the gradient of what is dropped");

        for p in [-0.1, 1.1, f64::NAN] {
            let error = drop(&x, p, true).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("from 0 to 1"), "{error}");
            assert!(drop(&x, p, false).is_err(), "{name} checks outside of training, too");
        }
        let error = drop(&x.to_dtype(DType::I64)?, 0.5, true).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("a float dtype"), "{error}");
        let error = drop(&numbers(&vec![2; refused])?, 0.5, true).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("dimensions"), "{error}");
        let mut empty = sizes.to_vec();
        empty[0] = 0;
        assert_eq!(drop(&numbers(&empty)?, 0.5, true)?.shape(), empty, "{name}");
    }
    Ok(())
}

/// The result of preserved elements, `a x + b`, and of dropped ones.
fn self_normalising(p: f64) -> (f64, f64, f64) {
    let a = 1.0 / ((1.0 - p) * (1.0 + p * FLOOR * FLOOR)).sqrt();
    let b = FLOOR * a * p;
    (a, b, b - FLOOR * a)
}

#[test]
fn alpha_dropout_is_its_formula_with_its_gradient() -> Result<()> {
    let _guard = load(&[]);
    let sizes = [4, 30, 3, 2];
    for (name, drop, each) in [
        ("alpha_dropout", (|x, p, on| x.alpha_dropout(p, on)) as Drop, 1),
        ("feature_alpha_dropout", |x, p, on| x.feature_alpha_dropout(p, on), 6),
    ] {
        for p in [0.1, 0.5, 0.8] {
            let (a, b, floor) = self_normalising(p);
            let x = numbers(&sizes)?.requires_grad_(true)?;
            let y = seeded(4, || drop(&x, p, true))?;
            y.sum_all()?.backward()?;
            let (from, made, g) =
                (x.detach().to_vec_f64()?, y.detach().to_vec_f64()?, x.grad().unwrap().to_vec_f64()?);
            let mut dropped = 0;
            for unit in 0..made.len() / each {
                let is_dropped = (made[unit * each] - floor).abs() < 1e-12;
                dropped += usize::from(is_dropped);
                for i in unit * each..(unit + 1) * each {
                    let (value, slope) = if is_dropped { (floor, 0.0) } else { (a * from[i] + b, a) };
                    assert!(
                        (made[i] - value).abs() < 1e-12 && (g[i] - slope).abs() < 1e-12,
                        "{name} {p} at {i}"
                    );
                }
            }
            assert_share(dropped, made.len() / each, p);
            let last = seeded(4, || drop(&x.detach().to(LAST)?, p, true))?;
            assert!(last.is_contiguous_in(LAST), "{name}");
            if each > 1 {
                assert_eq!(last.to_vec_f64()?, made, "{name}");
            }
        }
        let x = numbers(&sizes)?;
        assert!(drop(&x, 0.0, true)?.ptr_eq(&x) && drop(&x, 0.7, false)?.ptr_eq(&x), "{name}");
        assert_eq!(drop(&x, 1.0, true)?.to_vec_f64()?, vec![0.0; x.elem_count()], "{name}");
        for p in [-0.1, 1.1, f64::NAN] {
            let error = drop(&x, p, true).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("from 0 to 1"), "{error}");
        }
        let error = drop(&x.to_dtype(DType::I64)?, 0.5, true).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("a float dtype"), "{error}");
        let narrow = seeded(4, || drop(&x.to_dtype(DType::BF16)?, 0.5, true))?;
        assert_eq!((narrow.dtype(), narrow.shape()), (DType::BF16, &sizes[..]), "{name}");
    }
    Ok(())
}
