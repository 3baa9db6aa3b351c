//! The fused kernels of a layer beside the decomposition, at random sizes; second derivatives; threads; narrow dtypes.

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::dispatcher::op::{Arg, Args};
use keyway::nn::{Gru, Lstm, Module, RecurrentOptions, Rnn};
use keyway::ops::def::OpDef;
use keyway::ops::recurrent::{rnn_layer, rnn_layer_backward};
use keyway::rng::{self, Generator};
use keyway::{DType, Result, Tensor};

/// A sequence of numbers below a bound.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// A layer of random sizes: the arguments of the forward op but for `save`.
struct Layer {
    mode: &'static str,
    tensors: [Option<Tensor>; 6],
    batches: Vec<i64>,
    reverse: bool,
}

impl Layer {
    fn random(draw: &mut Draw, dtype: DType) -> Result<Layer> {
        let mode = ["lstm", "gru", "rnn_tanh", "rnn_relu"][draw.below(4)];
        let gates = match mode {
            "lstm" => 4,
            "gru" => 3,
            _ => 1,
        };
        // Around the sizes of a piece of a row and of the products for few rows.
        let hidden = [1, 2, 5, 31, 64, 130, 140][draw.below(7)];
        let projection =
            (mode == "lstm" && hidden > 1 && draw.below(3) == 0).then(|| 1 + draw.below(hidden - 1));
        let mut rows = [1, 2, 3, 32, 33, 35][draw.below(6)];
        let mut batches = vec![rows as i64];
        for _ in 0..draw.below(6) {
            rows -= if draw.below(2) == 0 { draw.below(rows) } else { 0 };
            batches.push(rows as i64);
        }
        let (batch, out) = (batches[0] as usize, projection.unwrap_or(hidden));
        let all = batches.iter().sum::<i64>() as usize;
        let some = |there: bool, rows: usize, columns: usize| {
            if there { Tensor::randn((rows, columns))?.to_dtype(dtype).map(Some) } else { Ok(None) }
        };
        let bias =
            if draw.below(2) == 0 { Some(Tensor::randn(gates * hidden)?.to_dtype(dtype)?) } else { None };
        let weight = some(true, gates * hidden, out)?.map(|t| t.div((out as f64).sqrt())).transpose()?;
        let tensors = [
            some(true, all, gates * hidden)?,
            some(true, batch, out)?,
            some(mode == "lstm", batch, hidden)?,
            weight,
            bias,
            some(projection.is_some(), out, hidden)?,
        ];
        Ok(Layer { mode, tensors, batches, reverse: draw.below(2) == 0 })
    }

    fn forward(&self) -> Vec<Arg<'_>> {
        let mut args: Vec<Arg<'_>> = self.tensors.iter().map(|t| Arg::optional(t.as_ref())).collect();
        args.extend([
            Arg::Ints(&self.batches),
            Arg::Bool(self.reverse),
            Arg::Str(self.mode),
            Arg::Bool(true),
        ]);
        args
    }

    /// The arguments of the backward op, from the results of the forward op.
    fn backward<'a>(&'a self, made: &'a [Tensor], grads: &'a [Option<Tensor>; 3]) -> Vec<Arg<'a>> {
        let [_, hidden, cell, weight, _, projection] = &self.tensors;
        let mut args: Vec<Arg<'_>> = grads
            .iter()
            .chain([hidden, cell, weight, projection])
            .map(|t| Arg::optional(t.as_ref()))
            .collect();
        args.extend([Arg::from(&made[0]), Arg::from(&made[3])]);
        args.extend([Arg::Ints(&self.batches), Arg::Bool(self.reverse), Arg::Str(self.mode)]);
        args
    }
}

fn decomposed(def: &'static OpDef, values: &[Arg<'_>]) -> Result<Vec<Tensor>> {
    let run = def.decomposition.expect("a decomposition");
    Ok(run(&Args { op: def.entry()?, values })?.into_iter().map(Tensor::from_ref).collect())
}

fn compare(what: &str, got: &[Tensor], expected: &[Tensor], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.shape(), expected.shape(), "{what}: result {i}");
        let (got, expected) = (got.to_vec_f64().unwrap(), expected.to_vec_f64().unwrap());
        let scale = expected.iter().fold(1.0f64, |most, x| most.max(x.abs()));
        for (k, (a, b)) in got.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() <= tolerance * scale, "{what}: result {i}, element {k}: {a}, expected {b}");
        }
    }
}

#[test]
fn kernels_agree_with_the_decomposition_at_random_sizes() -> Result<()> {
    let mut draw = Draw(5);
    rng::with_generator(&Generator::new(3), || {
        for nth in 0..60 {
            let (dtype, tolerance) = if nth % 2 == 0 { (DType::F64, 1e-13) } else { (DType::F32, 1e-5) };
            let layer = Layer::random(&mut draw, dtype)?;
            let what = format!("{nth}: {} {:?} {:?}", layer.mode, layer.tensors[3], layer.batches);
            let made = rnn_layer::DEF.run_all(&layer.forward())?;
            let expected = decomposed(&rnn_layer::DEF, &layer.forward())?;
            compare(&what, &made, &expected, tolerance);
            let mut grads = [None, None, None];
            for (i, grad) in grads.iter_mut().enumerate() {
                if draw.below(4) > 0 && made[i].elem_count() > 0 && (i < 2 || layer.mode == "lstm") {
                    *grad = Some(Tensor::randn(made[i].shape())?.to_dtype(dtype)?);
                }
            }
            let args = layer.backward(&expected, &grads);
            let got = rnn_layer_backward::DEF.run_all(&args)?;
            let by_parts = decomposed(&rnn_layer_backward::DEF, &args)?;
            compare(&format!("{what}, gradients"), &got, &by_parts, 4.0 * tolerance);
        }
        Ok(())
    })
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let x = rng::with_generator(&Generator::new(1), || Tensor::randn((6, 40, 20)))?;
    let lstm = rng::with_generator(&Generator::new(2), || Lstm::new(20, 200))?;
    let threads = keyway::num_threads();
    let mut all = Vec::new();
    for count in [1, 2, 3] {
        keyway::set_num_threads(count);
        lstm.zero_grad();
        let made = lstm.forward(&x)?;
        made.square()?.sum_all()?.backward()?;
        let mut bits = made.to_vec::<f32>()?;
        for parameter in lstm.parameters() {
            bits.extend(parameter.grad().expect("a gradient").to_vec::<f32>()?);
        }
        all.push(bits.into_iter().map(f32::to_bits).collect::<Vec<u32>>());
    }
    keyway::set_num_threads(threads);
    assert!(all[0] == all[1] && all[0] == all[2]);
    Ok(())
}

#[test]
fn first_and_second_derivatives_are_those_of_differences() -> Result<()> {
    let options = RecurrentOptions { bidirectional: true, ..Default::default() };
    let modules: [Box<dyn Module>; 4] = [
        Box::new(Lstm::with_projection(2, 3, 2, options)?),
        Box::new(Gru::with_options(2, 2, options)?),
        Box::new(Rnn::with_options(2, 2, options)?),
        Box::new(Lstm::new(2, 2)?),
    ];
    for module in modules {
        module.to(DType::F64)?;
        let x = Tensor::randn((3, 2, 2))?.to_dtype(DType::F64)?.requires_grad_(true)?;
        let run = |inputs: &[Tensor]| Ok(vec![module.forward(&inputs[0])?]);
        assert!(gradcheck(&run, std::slice::from_ref(&x), Tolerance::default())?.is_none());
        assert!(gradgradcheck(&run, &[x], Tolerance::default())?.is_none());
    }
    Ok(())
}

#[test]
fn narrow_dtypes_are_computed_in_f32() -> Result<()> {
    for (dtype, tolerance) in [(DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let gru = Gru::new(3, 4)?;
        let x = Tensor::randn((5, 2, 3))?;
        let expected = gru.forward(&x)?.detach();
        gru.to(dtype)?;
        let got = gru.forward(&x.to_dtype(dtype)?)?;
        assert_eq!(got.dtype(), dtype);
        compare(&format!("{dtype:?}"), &[got.detach()], &[expected], tolerance);
        got.sum_all()?.backward()?;
        assert!(gru.parameters().iter().all(|p| p.grad().is_some_and(|g| g.dtype() == dtype)));
    }
    Ok(())
}
