//! Batch norm by given statistics with a graph, as in fine tuning: which ops run, and that gradients are those of its formula.

mod rehearsal_support;

use keyway::autograd::gradcheck::{Tolerance, gradgradcheck};
use keyway::nn::{BatchNorm2d, Module};
use keyway::profiler::{self, Report};
use keyway::{DType, MemoryFormat, Result, Tensor};
use rehearsal_support::load;

const LAST: MemoryFormat = MemoryFormat::ChannelsLast;
const ROWS: MemoryFormat = MemoryFormat::Contiguous;
const CHANNELS: usize = 16;

/// Deterministic pseudo-random values in -0.5..0.5.
fn random(sizes: &[usize], seed: u64) -> Result<Tensor> {
    let number =
        |i: u64| ((i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / f64::from(1 << 24) - 0.5;
    Tensor::from_vec((0..sizes.iter().product::<usize>() as u64).map(number).collect(), sizes)
}

/// Input, mean, variance, weight, bias in f64.
fn numbers() -> Result<[Tensor; 5]> {
    let channels = |seed| random(&[CHANNELS], seed);
    let x = random(&[3, CHANNELS, 6, 7], 1)?.add(2.0)?;
    Ok([x, channels(2)?.add(2.0)?, channels(3)?.add(1.0)?, channels(4)?.add(1.0)?, channels(5)?])
}

/// The same result by separately recorded ops.
fn by_parts([x, mean, var, weight, bias]: [&Tensor; 5], eps: f64) -> Result<Tensor> {
    let spread = |t: &Tensor| t.reshape((1, CHANNELS, 1, 1));
    let rstd = spread(var)?.add(eps)?.sqrt()?.reciprocal()?;
    x.sub(&spread(mean)?)?.mul(&rstd)?.mul(&spread(weight)?)?.add(&spread(bias)?)
}

fn calls(report: &Report, op: &str) -> u64 {
    report.rows.iter().filter(|row| row.op == op).map(|row| row.calls).sum()
}

#[test]
fn gradients_are_those_of_the_parts_by_fused_ops() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let incoming = random(&[3, CHANNELS, 6, 7], 9)?;
    for (dtype, within) in [(DType::F64, 1e-12), (DType::F32, 3e-6), (DType::BF16, 2e-2)] {
        for (format, server) in [(ROWS, "keyway-cpu"), (LAST, "keyway-channels-last")] {
            // Rounded first, so that both have the same values; statistics are f32 at least.
            let kept = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let mut given = Vec::new();
            for (i, t) in numbers()?.into_iter().enumerate() {
                let t = t.to_dtype(if (1..3).contains(&i) { kept } else { dtype })?;
                given.push(if i == 0 { t.to(format)? } else { t }.detach());
            }
            for i in [0, 3, 4] {
                given[i] = given[i].detach().requires_grad_(true)?;
            }
            let [x, mean, var, weight, bias] = &given[..] else { unreachable!("five were made") };
            let profile = profiler::profile();
            let y = x.batch_norm(Some((mean, var)), Some(weight), Some(bias), false, 0.1, 1e-5)?;
            y.mul(&incoming.to((dtype, format))?)?.sum_all()?.backward()?;
            let report = profile.report();
            // The input's gradient is a product, or the op again.
            let again = u64::from(dtype == DType::BF16);
            assert_eq!(
                (calls(&report, "frozen_norm"), calls(&report, "channel_sums")),
                (1 + again, 1),
                "{report}"
            );
            assert_eq!(calls(&report, "addcmul") + calls(&report, "sub"), 0, "{report}");
            for row in report.rows.iter().filter(|row| ["frozen_norm", "channel_sums"].contains(&&*row.op)) {
                assert_eq!(row.served_by, server, "{}", row.op);
            }

            let wide: Vec<Tensor> =
                given.iter().map(|t| t.detach().to_dtype(DType::F64)).collect::<Result<_>>()?;
            let leaves = [0, 3, 4].map(|i| wide[i].detach().requires_grad_(true));
            let [x, weight, bias] = leaves;
            let (x, weight, bias) = (x?, weight?, bias?);
            let expected = by_parts([&x, &wide[1], &wide[2], &weight, &bias], 1e-5)?;
            expected.mul(&incoming.to_dtype(dtype)?.to_dtype(DType::F64)?)?.sum_all()?.backward()?;
            let pairs = [(y, expected.detach())].into_iter().chain(
                [(&given[0], x), (&given[3], weight), (&given[4], bias)]
                    .map(|(got, expected)| (got.grad().unwrap(), expected.grad().unwrap())),
            );
            for (nth, (got, expected)) in pairs.enumerate() {
                let scale = expected.abs()?.max_all()?.item::<f64>()?;
                let off =
                    got.detach().to_dtype(DType::F64)?.sub(&expected)?.abs()?.max_all()?.item::<f64>()?;
                assert!(off <= within * scale, "{dtype} {format}, result {nth}: {off} of {scale}");
            }
            assert!(given[0].grad().unwrap().is_contiguous_in(format));
        }
    }
    Ok(())
}

#[test]
fn frozen_weights_cost_no_sums() -> Result<()> {
    let _guard = load(&[]);
    let norm = BatchNorm2d::new(CHANNELS)?;
    norm.eval();
    for parameter in norm.parameters() {
        parameter.requires_grad_(false)?;
    }
    let x = random(&[3, CHANNELS, 6, 7], 1)?.to_dtype(DType::F32)?.detach().requires_grad_(true)?;
    let profile = profiler::profile();
    norm.forward(&x)?.square()?.sum_all()?.backward()?;
    let report = profile.report();
    assert_eq!((calls(&report, "frozen_norm"), calls(&report, "channel_sums")), (1, 0), "{report}");
    Ok(())
}

#[test]
fn it_is_differentiated_again_and_by_its_statistics() -> Result<()> {
    let _guard = load(&[]);
    let small = |sizes: &[usize], seed| random(sizes, seed)?.requires_grad_(true);
    let inputs = [
        small(&[2, 3, 2, 2], 1)?,
        small(&[3], 2)?,
        random(&[3], 3)?.add(1.0)?.detach().requires_grad_(true)?,
        small(&[3], 4)?,
        small(&[3], 5)?,
    ];
    let norm = |t: &[Tensor]| {
        let made = t[0].batch_norm(Some((&t[1], &t[2])), Some(&t[3]), Some(&t[4]), false, 0.1, 0.1)?;
        Ok(vec![made])
    };
    let wrong = gradgradcheck(&norm, &inputs, Tolerance::default())?;
    assert!(wrong.is_none(), "{:?}", wrong.map(|m| (m.input, m.numeric, m.analytic)));
    let wrong = keyway::autograd::gradcheck::gradcheck(&norm, &inputs, Tolerance::default())?;
    assert!(wrong.is_none(), "{:?}", wrong.map(|m| (m.input, m.numeric, m.analytic)));
    Ok(())
}

/// Narrow images are not converted for the sake of weights in f32: the gradients' sums are of f32 anyway.
#[test]
fn narrow_images_beside_wide_weights_stay_narrow_in_training() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let [x, _, _, weight, bias] = numbers()?;
    let incoming = random(&[3, CHANNELS, 6, 7], 9)?;
    for (dtype, within) in [(DType::F16, 2e-3), (DType::BF16, 1e-2)] {
        for format in [ROWS, LAST] {
            let leaf = |t: &Tensor| t.detach().requires_grad_(true);
            let image = leaf(&x.to_dtype(dtype)?.to(format)?)?;
            let affine = [&weight, &bias].map(|t| leaf(&t.to_dtype(DType::F32)?));
            let [weight, bias] = affine;
            let (weight, bias) = (weight?, bias?);
            let given = incoming.to((dtype, format))?;
            let profile = profiler::profile();
            let y = image.batch_norm(None, Some(&weight), Some(&bias), true, 0.1, 1e-5)?;
            y.backward_with(keyway::autograd::BackwardOptions::from(&given))?;
            let report = profile.report();
            let shapes = report.rows.iter().filter(|row| row.op == "to_dtype").flat_map(|row| &row.shapes);
            assert!(shapes.into_iter().all(|shapes| !shapes.inputs[0].contains("6,7")), "{report}");
            assert_eq!(calls(&report, "channel_norm_backward"), 1, "{report}");

            let wide = [&image, &weight, &bias].map(|t| leaf(&t.detach().to_dtype(DType::F64)?));
            let [wx, ww, wb] = wide;
            let (wx, ww, wb) = (wx?, ww?, wb?);
            let expected = wx.batch_norm(None, Some(&ww), Some(&wb), true, 0.1, 1e-5)?;
            expected.backward_with(keyway::autograd::BackwardOptions::from(&given.to_dtype(DType::F64)?))?;
            for (nth, (got, expected)) in
                [(&image, &wx), (&weight, &ww), (&bias, &wb)].into_iter().enumerate()
            {
                let (got, expected) = (got.grad().unwrap(), expected.grad().unwrap());
                assert_eq!(got.dtype(), if nth == 0 { dtype } else { DType::F32 });
                let scale = expected.abs()?.max_all()?.item::<f64>()?;
                let off = got.to_dtype(DType::F64)?.sub(&expected)?.abs()?.max_all()?.item::<f64>()?;
                assert!(off <= within * scale, "{dtype} {format}, gradient {nth}: {off} of {scale}");
            }
        }
    }
    Ok(())
}
