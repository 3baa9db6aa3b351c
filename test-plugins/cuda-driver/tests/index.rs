//! Ops that index, sort, select and generate random numbers, and element-wise ones along rows, on the stand-in: sizes
//! beyond one block or one pass, compared with the CPU.

mod support;

use keyway::nn::{MaxPoolOptions, Reduction};
use keyway::rng::manual_seed;
use keyway::tensor::Reduce;
use keyway::{DType, Device, Tensor};
use support::{cuda, load, message, run, stand_in};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("order") => order(),
        Some("places") => places(),
        Some("lines") => lines(),
        Some("many") => many(),
        Some("rows") => rows(),
        Some("windows") => windows(),
        Some("choice") => choice(),
        Some("running") => running(),
        Some("random") => random(),
        Some("errors") => errors(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

/// Pseudo-random values with duplicates, NaN and both zeros.
fn numbers(sizes: &[usize], values: u64) -> Tensor {
    let count: usize = sizes.iter().product();
    let mut state = 1u64;
    let one = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match (state >> 33) % values {
            0 => f32::NAN,
            1 => -0.0,
            2 => 0.0,
            x => (x as f32 - values as f32 / 2.0) * 0.25,
        }
    };
    Tensor::from_vec(std::iter::repeat_with(one).take(count).collect(), sizes).unwrap()
}

/// Indices below `n`, from a fixed stream.
fn indices(sizes: &[usize], n: u64) -> Tensor {
    let count: usize = sizes.iter().product();
    let all = (0..count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 % n as i64);
    Tensor::from_vec(all.collect(), sizes).unwrap()
}

/// The elements' bits, which distinguish the signs of zero and compare NaN as equal.
fn bits(tensor: &Tensor) -> Vec<u64> {
    let wide = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
    let all = wide.to_vec::<f64>().unwrap();
    all.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

/// The results of both devices are bit-identical.
#[track_caller]
fn same(what: &str, made: impl Fn(Device) -> Vec<Tensor>) {
    let (own, expected) = (made(cuda(0)), made(Device::CPU));
    assert_eq!(own.len(), expected.len());
    for (k, (own, expected)) in own.iter().zip(&expected).enumerate() {
        assert_eq!(own.device(), cuda(0), "{what}, result {k}");
        assert_eq!(own.shape(), expected.shape(), "{what}, result {k}");
        let (own, expected) = (bits(own), bits(expected));
        let wrong = own.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{what}, result {k}");
    }
}

fn order() {
    load();
    // Sorted by rank, in one tile, in several tiles, and several long rows, along either dimension.
    for sizes in [vec![1024], vec![1025], vec![5000], vec![3, 1500], vec![1500, 3], vec![70, 30]] {
        let all = numbers(&sizes, 300);
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I64, DType::U8] {
            // A cast of NaN to integers is 0.
            let all = all.to_dtype(dtype).unwrap();
            same(&format!("{sizes:?} {dtype:?}"), |device| {
                let x = all.to_device(device).unwrap();
                let (up, up_at) = x.sort_with(0, false, true).unwrap();
                let (down, down_at) = x.sort_with(-1, true, true).unwrap();
                let (few, few_at) = x.topk(7.min(sizes[0]), 0).unwrap();
                let (transposed, turned_at) = x.t().unwrap().sort_with(0, false, true).unwrap();
                vec![up, up_at, down, down_at, few, few_at, transposed, turned_at]
            });
        }
    }
    // Equal elements in several tiles, with their indices.
    let many = numbers(&[2, 20_000], 900);
    same("several tiles", |device| {
        let (sorted, places) = many.to_device(device).unwrap().sort_with(-1, false, true).unwrap();
        vec![sorted, places]
    });
    // Enough tiles for the histogram of a digit to fill more than one block of sums.
    let count = 2048 * 4096 + 3000;
    let bytes: Vec<u8> = (0..count).map(|i: u32| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let bytes = Tensor::from_vec(bytes, [count as usize]).unwrap();
    same("many tiles", |device| vec![bytes.to_device(device).unwrap().sort_with(0, false, true).unwrap().0]);
    // Few elements of each row, also of parts, with as many equal elements as there are kinds of them.
    for (sizes, k) in [
        (vec![3, 127], 10),
        (vec![3, 128], 127),
        (vec![2, 600], 512),
        (vec![2, 600], 513),
        (vec![70_001], 10),
    ] {
        for values in [2, 40, 100_000] {
            let all = numbers(&sizes, values);
            for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8] {
                let all = all.to_dtype(dtype).unwrap();
                same(&format!("{k} of {sizes:?} {dtype:?}, {values} values"), |device| {
                    let x = all.to_device(device).unwrap();
                    let (most, most_at) = x.topk(k, -1).unwrap();
                    let (least, least_at) = x.topk_with(k, -1, false, true).unwrap();
                    let transposed = x.t().unwrap().contiguous().unwrap();
                    let (along, along_at) = transposed.topk(k, 0).unwrap();
                    vec![most, most_at, least, least_at, along, along_at]
                });
            }
        }
    }
    let sorted = indices(&[3000], 500).sort_with(0, false, true).unwrap().0;
    same("searchsorted", |device| {
        let (line, values) =
            (sorted.to_device(device).unwrap(), indices(&[40, 50], 520).to_device(device).unwrap());
        vec![line.searchsorted(&values).unwrap(), line.searchsorted_with(&values, true).unwrap()]
    });
}

/// Sums at one index are exact: the devices add in f32 and in f64, and both results are bit-identical for these values.
fn places() {
    load();
    for (n, count) in [(900, 40), (3000, 7), (2500, 4000)] {
        let whole = indices(&[n, 5], 90).to_dtype(DType::F32).unwrap().mul(0.25).unwrap();
        let at = indices(&[n], count);
        let each = indices(&[n, 5], count);
        for dtype in [DType::F32, DType::F64, DType::I32] {
            same(&format!("{n} at {count} {dtype:?}"), |device| {
                let to = |t: &Tensor| t.to_device(device).unwrap();
                let source = to(&whole.to_dtype(dtype).unwrap());
                let target = Tensor::zeros_with([count as usize, 5], (dtype, device)).unwrap();
                let (at, each) = (to(&at), to(&each));
                vec![
                    target.scatter_add(0, &each, &source).unwrap(),
                    target.index_add(0, &at, &source).unwrap(),
                    target.t().unwrap().index_add(1, &at, &source.t().unwrap()).unwrap(),
                    target.index_put_with(&[Some(&at)], &source, true).unwrap(),
                    target.scatter_reduce(0, &each, &source, Reduce::Amax).unwrap(),
                    target.scatter_reduce_with(0, &each, &source, Reduce::Amin, false).unwrap(),
                    target.index_reduce_with(0, &at, &source, Reduce::Amax, false).unwrap(),
                    target.scatter(0, &each, &source).unwrap(),
                    target.index_copy(0, &at, &source).unwrap(),
                    target.index_put(&[Some(&at)], &source).unwrap(),
                    source.index_select(0, &at.remainder(n as i64).unwrap()).unwrap(),
                    source.gather(0, &each.remainder(n as i64).unwrap()).unwrap(),
                ]
            });
        }
    }
    same("in place, from itself", |device| {
        let x = indices(&[1500, 4], 100).to_device(device).unwrap();
        let at = indices(&[1500], 1500).to_device(device).unwrap();
        x.index_add_(0, &at, &x).unwrap();
        x.index_copy_(0, &at, &x).unwrap();
        vec![x]
    });
}

/// Rows of whole vectors and others, at aligned and unaligned addresses, next to rows, columns and single elements.
fn lines() {
    load();
    for n in [1, 3, 4, 5, 8, 12, 1024, 1025] {
        // Lines of `n` from the first element, from the second, and from the ninth.
        let wide = numbers(&[2, 3, n + 16], 40);
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::U8] {
            // A cast of NaN to integers is 0.
            let wide = wide.abs().unwrap().to_dtype(dtype).unwrap();
            same(&format!("lines of {n} {dtype:?}"), |device| {
                let wide = wide.to_device(device).unwrap();
                let mut all = Vec::new();
                for start in [0, 1, 8] {
                    let x = wide.narrow(2, start, n).unwrap();
                    let (row, column) =
                        (x.select(0, 1).unwrap().select(0, 2).unwrap(), x.narrow(2, 0, 1).unwrap());
                    let (one, mask) = (row.select(0, 0).unwrap(), x.gt(2.0).unwrap());
                    let side =
                        [&x.contiguous().unwrap(), &row, &column, &one, &wide.narrow(2, 8, n).unwrap()];
                    for other in side {
                        all.push(x.add(other).unwrap());
                        all.push(other.sub(&x).unwrap());
                        all.push(x.maximum(other).unwrap());
                        all.push(x.mul(2.0).unwrap().mul(other).unwrap());
                        all.push(mask.where_cond(&x, other).unwrap());
                        all.push(mask.narrow(2, 0, 1).unwrap().where_cond(other, &x).unwrap());
                        all.push(x.addcmul(other, &row).unwrap());
                        all.push(Tensor::cat(&[&x, &other.expand(x.shape()).unwrap()], 2).unwrap());
                        let held = wide.add(0.0).unwrap();
                        held.narrow(2, start, n).unwrap().add_(other).unwrap();
                        held.narrow(2, 8, n).unwrap().copy_(&other.expand(x.shape()).unwrap()).unwrap();
                        all.push(held);
                    }
                    all.push(x.masked_fill(&mask.select(0, 0).unwrap(), 3.0).unwrap());
                    if dtype.is_float() {
                        let (below, slopes) =
                            (wide.neg().unwrap().narrow(2, start, n).unwrap(), column.select(0, 0).unwrap());
                        all.push(below.prelu(&slopes.select(1, 0).unwrap()).unwrap());
                        all.push(x.nextafter(&row).unwrap());
                        all.push(x.l1_loss_with(&below, Reduction::None).unwrap());
                    }
                    all.push(x.flip([0, 1]).unwrap());
                    all.push(x.flip([2]).unwrap());
                    all.push(x.transpose(0, 1).unwrap().contiguous().unwrap());
                    all.push(row.expand([2, 3, n]).unwrap().contiguous().unwrap());
                    all.push(column.expand([2, 3, n]).unwrap().contiguous().unwrap());
                }
                all
            });
        }
    }
}

/// Enough elements for a thread to process two.
fn many() {
    load();
    let wide = numbers(&[1030, 1025], 40);
    for dtype in [DType::F32, DType::F16] {
        let wide = wide.to_dtype(dtype).unwrap();
        same(&format!("many {dtype:?}"), |device| {
            let x = wide.to_device(device).unwrap();
            let row = x.select(0, 3).unwrap();
            let part = x.narrow(1, 1, 1021).unwrap();
            let held = x.add(0.0).unwrap();
            held.narrow(1, 1, 1021).unwrap().add_(&part).unwrap();
            let mask = row.gt(1.0).unwrap();
            vec![x.add(&row).unwrap(), part.contiguous().unwrap(), held, mask.where_cond(&x, &row).unwrap()]
        });
    }
}

/// Rows that are copied by vectors of several sizes.
fn rows() {
    load();
    for (width, count) in [(1, 70), (3, 70), (4, 70), (6, 70), (8, 70), (12, 500), (1024, 9), (1025, 9)] {
        let wide = numbers(&[40, width + 16], 40);
        let at = indices(&[count], 40);
        for dtype in [DType::F32, DType::F64, DType::F16, DType::U8] {
            let wide = wide.abs().unwrap().to_dtype(dtype).unwrap();
            same(&format!("{count} rows of {width} {dtype:?}"), |device| {
                let (wide, at) = (wide.to_device(device).unwrap(), at.to_device(device).unwrap());
                let part = |start| wide.narrow(1, start, width).unwrap();
                let whole = part(0).contiguous().unwrap();
                vec![
                    whole.index_select(0, &at).unwrap(),
                    part(1).index_select(0, &at).unwrap(),
                    part(8).index_select(0, &at).unwrap(),
                    whole.embedding(&at).unwrap(),
                    whole.t().unwrap().index_select(1, &at).unwrap(),
                    whole.index(&[Some(&at)]).unwrap(),
                ]
            });
        }
    }
    // Enough vectors, and enough elements, for a thread to process two.
    for (width, count) in [(16, (1 << 18) + 3), (5, 210_000)] {
        let all = numbers(&[300, width], 40);
        let at = indices(&[count], 300);
        same(&format!("{count} rows of {width}"), |device| {
            vec![all.to_device(device).unwrap().index_select(0, &at.to_device(device).unwrap()).unwrap()]
        });
    }
}

/// The largest elements under windows that reach over the border, with holes, of images in either order.
fn windows() {
    load();
    for (kernel, stride, padding, dilation) in
        [(2, 2, 0, 1), (3, 2, 1, 1), (5, 1, 2, 1), (3, 3, 1, 2), (1, 2, 0, 1), (7, 7, 3, 1)]
    {
        let options = MaxPoolOptions::new(kernel).stride(stride).padding(padding).dilation(dilation);
        let all = numbers(&[2, 3, 17, 14], 40);
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let all = all.to_dtype(dtype).unwrap();
            same(&format!("{kernel} {stride} {padding} {dilation} {dtype:?}"), |device| {
                let x = all.to_device(device).unwrap();
                let (largest, places) = x.max_pool2d_with_indices(options).unwrap();
                vec![largest, places, x.transpose(2, 3).unwrap().max_pool2d(options).unwrap()]
            });
        }
    }
}

fn choice() {
    load();
    for sizes in [vec![31], vec![33], vec![40, 70], vec![11, 300]] {
        let all = numbers(&sizes, 9);
        same(&format!("{sizes:?}"), |device| {
            let x = all.to_device(device).unwrap();
            let mask = x.gt(0.0).unwrap();
            let unique = x.unique_all().unwrap();
            let chosen = x.masked_select(&mask).unwrap();
            let mask_t = mask.t().unwrap();
            let whole = x.to_dtype(DType::I16).unwrap().unique_all().unwrap();
            vec![
                x.nonzero().unwrap(),
                x.t().unwrap().nonzero().unwrap(),
                x.masked_select(&mask_t.contiguous().unwrap().t().unwrap()).unwrap(),
                x.masked_scatter(&mask, &chosen).unwrap(),
                x.masked_scatter(&mask, &x.t().unwrap()).unwrap(),
                x.t().unwrap().masked_scatter(&mask_t, &chosen.mul(2.0).unwrap()).unwrap(),
                chosen,
                unique.values,
                unique.inverse,
                unique.counts,
                whole.values,
                whole.inverse,
                whole.counts,
            ]
        });
    }
}

/// Integers have no rounding, for any split of a line.
fn running() {
    load();
    for sizes in [vec![255], vec![256], vec![1000], vec![70_000], vec![3, 700], vec![700, 3]] {
        let all = indices(&sizes, 50);
        same(&format!("{sizes:?}"), |device| {
            let x = all.to_device(device).unwrap();
            let real = x.to_dtype(DType::F64).unwrap();
            vec![
                x.cumsum(0).unwrap(),
                x.cumsum_reversed(-1).unwrap(),
                x.cumprod(0).unwrap(),
                real.cumsum(0).unwrap(),
                real.t().unwrap().cumsum_reversed(0).unwrap(),
            ]
        });
    }
    // Adjacent elements, in rows that begin at any offset.
    for n in [1, 31, 32, 255, 256, 1024, 1025, 4097, 9000, 70_001] {
        let all = indices(&[3, n + 1], 2);
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64] {
            same(&format!("{n} neighbours {dtype:?}"), |device| {
                let x = all.to_dtype(dtype).unwrap().to_device(device).unwrap();
                let (whole, within) =
                    (x.narrow(1, 0, n).unwrap().contiguous().unwrap(), x.narrow(1, 1, n).unwrap());
                vec![
                    whole.cumsum(1).unwrap(),
                    whole.cumsum_reversed(1).unwrap(),
                    within.cumsum(1).unwrap(),
                    within.cumsum_reversed(1).unwrap(),
                    within.narrow(0, 1, 1).unwrap().cumsum(1).unwrap(),
                ]
            });
        }
    }
    // Extremes with many ties, NaN among them, in rows, columns, and middle dimensions.
    for n in [31, 32, 256, 1025, 9000, 70_001] {
        for dtype in [DType::F16, DType::F64, DType::I64, DType::U8] {
            let all = if dtype.is_float() { numbers(&[3, n + 1], 900) } else { indices(&[3, n + 1], 90) };
            same(&format!("extremes of {n} {dtype:?}"), |device| {
                let x = all.to_dtype(dtype).unwrap().to_device(device).unwrap();
                let within = x.narrow(1, 1, n).unwrap();
                let columns = x.t().unwrap().contiguous().unwrap();
                let made = [x.cummax(1), within.cummin(1), columns.cummax(0), columns.t().unwrap().cummin(1)];
                made.into_iter().flat_map(|made| <[Tensor; 2]>::from(made.unwrap())).collect()
            });
        }
    }
}

/// With the same seed both devices generate the same values; normal ones differ at most by the rounding of the functions.
fn random() {
    load();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        same(&format!("{dtype:?}"), |device| {
            manual_seed(7);
            let empty = |sizes: &[usize]| Tensor::empty_with(sizes, (dtype, device)).unwrap();
            let uniform = empty(&[1001]).uniform_(-1.0, 3.0).unwrap();
            let transposed = empty(&[13, 27]).t().unwrap().uniform_(0.0, 1.0).unwrap();
            let chosen = empty(&[77]).bernoulli_(0.3).unwrap();
            let whole = empty(&[77]).random_(-5, 100).unwrap();
            let shares = uniform.clamp(0.0, 1.0).unwrap().bernoulli().unwrap();
            let dropped = uniform.dropout(0.4, true).unwrap();
            vec![uniform, transposed, chosen, whole, shares, dropped]
        });
        let normal = |device| {
            manual_seed(7);
            let made = Tensor::randn_with([1001], (DType::F64, device)).unwrap();
            made.to_device(Device::CPU).unwrap().to_vec::<f64>().unwrap()
        };
        for (a, b) in normal(cuda(0)).iter().zip(&normal(Device::CPU)) {
            assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

/// An index out of range is refused before anything is read or written, as on the CPU, and the device still works.
fn errors() {
    load();
    let refused = |device: Device| {
        let x = support::ramp(&[4, 3]).to_device(device).unwrap();
        let mut far = vec![1i64; 2000];
        (far[1400], far[1900]) = (4, -9);
        let at = Tensor::from_vec(far, [2000]).unwrap().to_device(device).unwrap();
        let below = Tensor::new([0i64, -5]).unwrap().to_device(device).unwrap();
        let before = x.add(0.0).unwrap();
        let said = vec![
            message(x.index_select(0, &at)),
            message(x.gather(0, &below.reshape([1, 2]).unwrap())),
            message(x.index_copy_(0, &below, &x.narrow(0, 0, 2).unwrap())),
            message(x.index_put_with(&[Some(&below)], 1.0, true)),
            message(x.embedding(&at)),
            message(at.one_hot(3)),
        ];
        assert_eq!(bits(&x), bits(&before));
        said
    };
    let (own, expected) = (refused(cuda(0)), refused(Device::CPU));
    for (own, expected) in own.iter().zip(&expected) {
        assert_eq!(own.replace("keyway-cuda", "keyway-cpu"), *expected);
        assert!(own.contains("index "), "{own}");
    }
}

fn each(scenario: &str) {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2", "3"] {
        run(scenario, &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

#[test]
fn sorts_are_those_of_the_cpu() {
    each("order");
}

#[test]
fn sums_and_writes_at_indices_are_those_of_the_cpu() {
    each("places");
}

#[test]
fn lines_are_those_of_the_cpu() {
    each("lines");
    each("many");
}

#[test]
fn rows_at_indices_are_those_of_the_cpu() {
    each("rows");
}

#[test]
fn windows_are_those_of_the_cpu() {
    each("windows");
}

#[test]
fn what_is_chosen_is_what_the_cpu_chooses() {
    each("choice");
}

#[test]
fn running_values_are_those_of_the_cpu() {
    each("running");
}

#[test]
fn random_numbers_are_those_of_the_cpu() {
    each("random");
}

#[test]
fn an_index_that_is_not_there_is_refused() {
    each("errors");
}
