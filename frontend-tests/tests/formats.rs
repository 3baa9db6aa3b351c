//! Memory formats as programs ask for them: factories, conversions, slices, images of one channel, gradients, files.

mod rehearsal_support;

use keyway::dispatcher::ledger::{Served, last_served};
use keyway::io::safetensors;
use keyway::nn::{
    BatchNorm2d, Conv2d, ConvOptions, Flatten, MaxPool2d, MaxPoolOptions, Module, Relu, Sequential,
};
use keyway::rng::{self, Generator, manual_seed};
use keyway::{DType, Device, MemoryFormat, Result, Tensor, profiler};
use rehearsal_support::load;

const LAST: MemoryFormat = MemoryFormat::ChannelsLast;
const ROWS: MemoryFormat = MemoryFormat::Contiguous;
/// Shapes of each rank that has memory formats, with the strides of channels_last.
const SHAPES: [(&[usize], &[usize]); 3] =
    [(&[2, 3, 4], &[12, 1, 3]), (&[2, 3, 4, 5], &[60, 1, 15, 3]), (&[2, 3, 2, 4, 5], &[120, 1, 60, 15, 3])];

/// 0, 1, 2 ..
fn counted(sizes: &[usize]) -> Result<Tensor> {
    let count = sizes.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|i| i as f32).collect(), sizes)
}

type Factory = fn(&[usize], MemoryFormat) -> Result<Tensor>;

const FACTORIES: [(&str, Factory); 7] = [
    ("empty", |n, f| Tensor::empty_with(n, f)),
    ("full", |n, f| Tensor::full_with(n, 7, (DType::F32, Device::CPU, f))),
    ("zeros", |n, f| Tensor::zeros_with(n, f)),
    ("ones", |n, f| Tensor::ones_with(n, f)),
    ("rand", |n, f| Tensor::rand_with(n, f)),
    ("randn", |n, f| Tensor::randn_with(n, f)),
    ("randint", |n, f| Tensor::randint_with(0, 100, n, (DType::I64, Device::CPU, f))),
];

#[test]
fn factories_make_each_rank_in_each_format_with_the_same_numbers() -> Result<()> {
    let _guard = load(&[]);
    for (name, make) in FACTORIES {
        for (sizes, strides) in SHAPES {
            manual_seed(5);
            let rows = make(sizes, ROWS)?;
            manual_seed(5);
            let last = make(sizes, LAST)?;
            assert!(rows.is_contiguous() && last.strides() == strides, "{name} {sizes:?}");
            assert!(name == "empty" || rows.to_vec_f64()? == last.to_vec_f64()?, "{name} {sizes:?}");
        }
        for sizes in [&[][..], &[4], &[3, 4], &[1, 2, 1, 2, 1, 2]] {
            let error = make(sizes, LAST).unwrap_err().to_string();
            assert!(error.contains("of 3, 4 or 5 dimensions for channels_last"), "{name}: {error}");
            assert!(make(sizes, ROWS)?.is_contiguous());
        }
        let error = make(&[2, 3, 4], MemoryFormat::Preserve).unwrap_err().to_string();
        assert!(error.contains("contiguous or channels_last"), "{name}: {error}");
    }
    Ok(())
}

type Like = fn(&Tensor, MemoryFormat) -> Result<Tensor>;

const LIKES: [(&str, Like); 7] = [
    ("empty_like", |t, f| t.empty_like_with(f)),
    ("full_like", |t, f| t.full_like_with(7, f)),
    ("zeros_like", |t, f| t.zeros_like_with(f)),
    ("ones_like", |t, f| t.ones_like_with(f)),
    ("rand_like", |t, f| t.rand_like_with(f)),
    ("randn_like", |t, f| t.randn_like_with(f)),
    ("randint_like", |t, f| t.randint_like_with(0, 9, f)),
];

/// Images of more elements than the kernels compute at a time, with rows whose first index is no multiple of 4.
#[test]
fn random_numbers_belong_to_the_indices_whatever_the_strides() -> Result<()> {
    let _guard = load(&[]);
    for sizes in [[2, 70, 13, 11], [1, 130, 33, 32], [3, 5, 1, 7], [2, 9, 129, 3]] {
        let x = Tensor::rand(sizes)?.add(1.0)?;
        let wide = Tensor::zeros([sizes[0], sizes[1], sizes[2], 2 * sizes[3]])?;
        let every_second = wide.slice(3, None, None, 2)?;
        every_second.copy_(&x)?;
        let last = x.to(LAST)?;
        let transposed = x.transpose(2, 3)?.contiguous()?.transpose(2, 3)?;
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let made = |t: &Tensor| -> Result<Vec<Vec<f64>>> {
                let t = t.to_dtype(dtype)?;
                manual_seed(11);
                let (dropped, chosen) = (t.dropout(0.3, true)?, t.sub(1.0)?.clamp(0.0, 1.0)?.bernoulli()?);
                let own = t.zeros_like()?;
                own.uniform_(0.0, 1.0)?;
                let uniform = own.to_vec_f64()?;
                own.normal_(0.0, 1.0)?;
                Ok(vec![dropped.to_vec_f64()?, chosen.to_vec_f64()?, uniform, own.to_vec_f64()?])
            };
            let expected = made(&x)?;
            for (name, t) in
                [("channels_last", &last), ("every second", &every_second), ("turned", &transposed)]
            {
                assert_eq!(made(t)?, expected, "{sizes:?} {name} {dtype}");
            }
        }
        manual_seed(12);
        let expected = Tensor::zeros(sizes)?;
        expected.normal_(0.0, 1.0)?;
        manual_seed(12);
        every_second.normal_(0.0, 1.0)?;
        assert_eq!(every_second.to_vec_f64()?, expected.to_vec_f64()?, "{sizes:?}");
        assert_eq!(wide.slice(3, Some(1), None, 2)?.abs()?.amax(..)?.item::<f32>()?, 0.0);
    }
    Ok(())
}

#[test]
fn likes_preserve_or_change_the_format() -> Result<()> {
    let _guard = load(&[]);
    for (name, like) in LIKES {
        for (sizes, strides) in SHAPES {
            let last = counted(sizes)?.to(LAST)?;
            assert_eq!(like(&last, MemoryFormat::Preserve)?.strides(), strides, "{name}");
            assert!(like(&last, ROWS)?.is_contiguous(), "{name}");
            assert_eq!(like(&counted(sizes)?, LAST)?.strides(), strides, "{name}");
        }
        // Channels of a larger tensor: their order, without the gaps.
        let slice = counted(&[2, 5, 4, 3])?.to(LAST)?.narrow(1, 1, 3)?;
        assert_eq!(like(&slice, MemoryFormat::Preserve)?.strides(), [36, 1, 9, 3], "{name}");
        assert!(like(&counted(&[3, 4])?, LAST).unwrap_err().to_string().contains("3, 4 or 5"), "{name}");
    }
    let last = counted(&[2, 3, 4, 5])?.to(LAST)?;
    assert_eq!(last.new_zeros([1, 6, 2, 2])?.strides(), [24, 1, 12, 6]);
    assert!(last.new_ones([6, 2])?.is_contiguous());
    Ok(())
}

#[test]
fn conversions_keep_values_and_gradients() -> Result<()> {
    let _guard = load(&[]);
    for (sizes, strides) in SHAPES {
        let x = counted(sizes)?.requires_grad_(true)?;
        let y = x.to((DType::F64, LAST))?;
        assert_eq!((y.dtype(), y.strides()), (DType::F64, strides));
        assert_eq!(y.to_vec_f64()?, x.detach().to_vec_f64()?);
        y.mul(&x.copy_with(LAST)?)?.sum_all()?.backward()?;
        let doubled: Vec<f64> = x.detach().to_vec_f64()?.iter().map(|v| 2.0 * v).collect();
        assert_eq!(x.grad().unwrap().to_vec_f64()?, doubled);
        let back = y.detach().contiguous_in(ROWS)?;
        assert!(back.is_contiguous() && !back.shares_storage(&y));
    }
    let error = counted(&[2, 3])?.to((DType::F64, LAST)).unwrap_err().to_string();
    assert!(error.contains("3, 4 or 5 dimensions"), "{error}");
    Ok(())
}

#[test]
fn slices_keep_their_order() -> Result<()> {
    let _guard = load(&[]);
    let last = counted(&[2, 6, 5, 4])?.to(LAST)?;
    let slices = [
        last.narrow(1, 1, 4)?,
        last.narrow(2, 1, 3)?,
        last.narrow(3, 1, 2)?,
        last.slice(2, None, None, 2)?,
        last.narrow(1, 2, 1)?,
    ];
    for slice in slices {
        let rows = slice.contiguous()?.add(1.0)?;
        for made in [
            slice.relu()?,
            slice.add(&slice)?,
            // Both argument orders of a mixed call.
            slice.mul(&rows)?,
            rows.mul(&slice)?,
            slice.copy()?,
            slice.softmax(1)?,
            slice.cumsum(2)?,
            slice.clamp(1.0, 5.0)?,
            Tensor::cat(&[&slice, &rows], 1)?,
            slice.gt(&rows)?.where_cond(&slice, &rows)?,
            slice.max_pool2d(MaxPoolOptions::new(1))?,
        ] {
            assert!(made.is_contiguous_in(LAST), "{:?} of {:?}", made.strides(), slice.strides());
            assert!(!made.is_in_row_major_alone(), "{:?} of {:?}", made.strides(), slice.shape());
        }
        assert_eq!(slice.mul(&rows)?.to_vec_f64()?, slice.contiguous()?.mul(&rows)?.to_vec_f64()?);
    }
    // Other orders are preserved if all agree.
    let transposed = counted(&[4, 6])?.t()?;
    let (a, b) = (transposed.narrow(0, 1, 3)?, transposed.narrow(0, 2, 3)?);
    assert_eq!(a.add(&b)?.strides(), [1, 3]);
    assert!(a.add(&counted(&[3, 4])?)?.is_contiguous());
    Ok(())
}

trait Lies {
    fn is_in_row_major_alone(&self) -> bool;
}

impl Lies for Tensor {
    /// Whether the strides say row-major, also where elements lie in both formats.
    fn is_in_row_major_alone(&self) -> bool {
        self.strides() == keyway::dispatcher::dims::contiguous_strides(self.shape()).as_slice()
    }
}

fn last_server() -> &'static str {
    match last_served() {
        Served::Kernel(kernel) => kernel.plugin.name,
        _ => "nobody",
    }
}

#[test]
fn the_strides_of_one_channel_decide_key_and_format() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    const IMAGES: &str = "keyway-channels-last";
    let (gray, kernels) = (counted(&[2, 1, 8, 8])?, counted(&[16, 1, 3, 3])?);
    let (gray_last, kernels_last) = (gray.to(LAST)?, kernels.to(LAST)?);
    for (x, w, last) in [
        (&gray, &kernels, false),
        (&gray_last, &kernels, true),
        (&gray, &kernels_last, true),
        (&gray_last, &kernels_last, true),
        // `contiguous` takes what was meant back.
        (&gray_last.contiguous()?, &kernels_last.contiguous()?, false),
    ] {
        let y = x.conv2d(w, None)?;
        assert_eq!(y.is_contiguous_in(LAST), last, "{:?} {:?}", x.strides(), w.strides());
        assert_eq!(last_server() == IMAGES, last, "{:?} {:?}", x.strides(), w.strides());
    }
    // An unambiguous format takes precedence over ambiguous ones.
    let pixel = counted(&[2, 16, 1, 1])?.to(LAST)?;
    let rows = counted(&[2, 16, 4, 4])?;
    assert!(rows.mul(&pixel)?.is_contiguous() && pixel.mul(&rows)?.is_contiguous());
    assert!(rows.to(LAST)?.mul(&pixel.contiguous()?)?.is_contiguous_in(LAST));
    for made in [
        gray_last.relu()?,
        gray_last.max_pool2d(MaxPoolOptions::new(2))?,
        gray_last.add(&gray)?,
        gray.add(&gray_last)?,
    ] {
        assert_eq!(made.strides()[1], 1, "{:?}", made.strides());
    }
    assert_eq!(rows.to(LAST)?.mean_keepdim((2, 3))?.strides(), [16, 1, 16, 16]);
    assert_eq!(rows.to(LAST)?.sum_keepdim(1)?.strides(), [16, 1, 4, 1]);
    Ok(())
}

/// A net for images of one channel that ends in a layer over all pixels.
fn net() -> Result<Sequential> {
    let options = || ConvOptions::default().padding(1);
    Ok(Sequential::new()
        .push(Conv2d::without_bias(1, 16, 3, options())?)
        .push(BatchNorm2d::new(16)?)
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push(Conv2d::new(16, 10, 4)?)
        .push(Flatten::default()))
}

#[test]
fn a_net_for_one_channel_reorders_nothing_in_a_step() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let mut results = Vec::new();
    for format in [ROWS, LAST] {
        let model = rng::with_generator(&Generator::new(7), net)?;
        model.to_memory_format(format)?;
        let x = counted(&[3, 1, 8, 8])?.div(100.0)?.to(format)?.detach().requires_grad_(true)?;
        let profile = profiler::trace();
        let y = model.forward(&x)?;
        y.square()?.mean_all()?.backward()?;
        let report = profile.report();
        assert!(report.reorderings.is_empty(), "{:?}", report.reorderings);
        assert!(report.format_changes.is_empty(), "{:?}", report.format_changes);
        let grads = model.parameters().into_iter().map(|p| p.grad().unwrap());
        results.push([y, x.grad().unwrap()].into_iter().chain(grads).collect::<Vec<_>>());
    }
    for (nth, (rows, last)) in results[0].iter().zip(&results[1]).enumerate() {
        let scale = rows.to_vec_f64()?.into_iter().fold(1e-3, |scale: f64, x| scale.max(x.abs()));
        let difference = rows.sub(last)?.abs()?.max_all()?.to_vec_f64()?[0];
        assert!(difference < 1e-4 * scale, "result {nth}: {difference} of {scale}");
    }
    Ok(())
}

#[test]
fn a_kernel_as_large_as_its_image_is_the_same_layer_in_both_formats() -> Result<()> {
    let _guard = load(&[]);
    // On a wider image, the layer is the kernel's first output position.
    let (x, w) = (counted(&[3, 5, 2, 4])?.div(60.0)?, counted(&[7, 5, 2, 4])?.div(90.0)?);
    let bias = counted(&[7])?;
    let wide = x.constant_pad(&[0, 1], 0)?;
    let expected = wide.conv2d(&w, Some(&bias))?.narrow(3, 0, 1)?.contiguous()?.to_vec_f64()?;
    for (x_format, w_format) in [(ROWS, ROWS), (LAST, LAST), (LAST, ROWS), (ROWS, LAST)] {
        let x = x.to(x_format)?.detach().requires_grad_(true)?;
        let w = w.to(w_format)?.detach().requires_grad_(true)?;
        let y = x.conv2d(&w, Some(&bias))?;
        let last = x_format == LAST || w_format == LAST;
        assert_eq!((y.shape(), y.strides()[1] == 1), (&[3, 7, 1, 1][..], true), "{:?}", y.strides());
        assert_eq!(y.strides()[2] == 7, last, "{:?}", y.strides());
        let got = y.detach().to_vec_f64()?;
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs().max(1.0)));
        y.sum_all()?.backward()?;
        assert!(x.grad().unwrap().is_contiguous_in(x_format) && w.grad().unwrap().is_contiguous_in(w_format));
        let of_x = x.grad().unwrap().select(0, 2)?.to_vec_f64()?;
        let summed = w.detach().sum(0)?.to_vec_f64()?;
        assert!(of_x.iter().zip(&summed).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs().max(1.0)));
    }
    // Without a batch, and what the op refuses it refuses here too.
    assert_eq!(x.select(0, 0)?.conv2d(&w, None)?.shape(), [7, 1, 1]);
    let error = x.conv2d(&w, Some(&counted(&[6])?)).unwrap_err().to_string();
    assert!(error.contains("bias"), "{error}");
    Ok(())
}

#[test]
fn files_keep_what_is_meant() -> Result<()> {
    let _guard = load(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gray.safetensors");
    let gray = counted(&[2, 1, 3, 4])?.to(LAST)?;
    let plain = counted(&[2, 1, 3, 4])?;
    let state = [("last".to_string(), gray.clone()), ("rows".to_string(), plain.clone())];
    safetensors::save(&path, &state.into_iter().collect())?;
    let read = safetensors::load(&path)?;
    assert_eq!((read["last"].strides(), read["rows"].strides()), (gray.strides(), plain.strides()));
    Ok(())
}

#[test]
fn stacked_batches_and_repeated_elements_keep_the_format() -> Result<()> {
    let _guard = load(&[]);
    for (sizes, _) in SHAPES {
        let (rows, last) = (counted(sizes)?, counted(sizes)?.to(LAST)?.requires_grad_(true)?);
        for dim in 0..sizes.len() {
            for repeats in [1, 3] {
                let made = last.repeat_interleave(repeats, dim)?;
                let strides = made.strides();
                assert!(made.is_contiguous_in(LAST), "repeat_interleave {sizes:?} along {dim}: {strides:?}");
                assert_eq!(made.to_vec_f64()?, rows.repeat_interleave(repeats, dim)?.to_vec_f64()?);
            }
        }
        for dim in 0..2 {
            let made = Tensor::stack(&[&last, &rows], dim)?;
            assert_eq!(made.to_vec_f64()?, Tensor::stack(&[&rows, &rows], dim)?.to_vec_f64()?);
            if sizes.len() == 3 {
                continue;
            }
            for batch in 0..2 {
                let batch = made.select(dim, batch)?;
                let is_last = batch.strides()[1] == 1 && batch.strides()[2..] == last.strides()[2..];
                assert!(is_last, "stack {sizes:?} along {dim}: {:?}", made.strides());
            }
            assert!(dim > 0 || made.select(0, 1)?.is_contiguous_in(LAST));
            made.sum(..)?.backward()?;
            assert!(last.grad().is_some_and(|grad| grad.is_contiguous_in(LAST)));
        }
    }
    Ok(())
}

/// Rows, columns of many channels, and rows that are short: in each order in memory that a kernel of its own computes.
#[test]
fn norms_over_the_last_dimensions_are_the_same_in_both_formats() -> Result<()> {
    let _guard = load(&[]);
    for sizes in [[3, 70, 5, 14], [2, 5, 3, 40], [2, 3, 2, 2], [9, 2, 3, 65]] {
        for lead in 1..4 {
            let shape: Vec<i64> = sizes[lead..].iter().map(|n| *n as i64).collect();
            let (weight, bias) = (Tensor::rand(&sizes[lead..])?, Tensor::rand(&sizes[lead..])?);
            let (x, start) = (Tensor::randn(sizes)?.add(1.0)?, Tensor::randn(sizes)?);
            for dtype in [DType::F64, DType::F32] {
                let made = |format: MemoryFormat| -> Result<Vec<Vec<f64>>> {
                    let leaf = |t: &Tensor| t.to_dtype(dtype)?.copy()?.requires_grad_(true);
                    let (weight, bias) = (leaf(&weight)?, leaf(&bias)?);
                    let (x, start) = (leaf(&x.to(format)?)?, start.to_dtype(dtype)?.to(format)?);
                    let mut all = Vec::new();
                    for y in [
                        x.layer_norm(&shape[..], Some(&weight), Some(&bias))?,
                        x.rms_norm(&shape[..], Some(&weight))?,
                    ] {
                        assert_eq!(y.strides(), x.strides());
                        all.push(y.to_vec_f64()?);
                        y.mul(&start)?.sum(..)?.backward()?;
                    }
                    for leaf in [&x, &weight, &bias] {
                        all.push(leaf.grad().map(|grad| grad.to_vec_f64()).transpose()?.unwrap_or_default());
                    }
                    Ok(all)
                };
                let tolerance = if dtype == DType::F64 { 1e-9 } else { 2e-3 };
                for (nth, (rows, last)) in made(ROWS)?.iter().zip(made(LAST)?).enumerate() {
                    assert_eq!(rows.len(), last.len());
                    for (a, b) in rows.iter().zip(last) {
                        let close = (a - b).abs() <= tolerance * (1.0 + a.abs());
                        assert!(close, "{sizes:?} over {shape:?} of {dtype}, result {nth}: {a} and {b}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// The profile counts the memory that a kernel takes for itself.
#[test]
fn a_layer_norm_of_images_in_channels_last_copies_none() -> Result<()> {
    let _guard = load(&[]);
    let image = Tensor::ones([16, 64, 32, 32])?;
    let bytes = (4 * image.elem_count()) as u64;
    let taken = |x: &Tensor, shape: &[i64]| -> Result<u64> {
        let x = x.detach().requires_grad_(true)?;
        let profile = profiler::profile();
        let y = x.layer_norm(shape, None, None)?;
        assert_eq!(y.strides(), x.strides());
        y.sum(..)?.backward()?;
        let report = profile.report();
        Ok(report.rows.iter().filter(|row| row.op.contains("layer_norm")).map(|row| row.scratch_bytes).sum())
    };
    let last = image.to(LAST)?;
    for (x, shape) in [
        (&last, &[64, 32, 32][..]),
        (&last, &[32, 32]),
        (&last, &[32]),
        (&image, &[64, 32, 32]),
        (&image, &[32]),
        (&last.permute([0, 2, 3, 1])?, &[64]),
    ] {
        let taken = taken(x, shape)?;
        assert!(taken < bytes, "{shape:?} of {:?}: {taken} bytes", x.strides());
    }
    Ok(())
}
