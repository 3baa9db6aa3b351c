//! Recurrent modules: values and gradients beside PyTorch's (`expected.py`), states, sequences of several lengths, wrong input.

mod fused;

use keyway::nn::{
    Gru, GruCell, Lstm, LstmCell, LstmState, Module, PackedSequence, RecurrentOptions, Rnn, RnnCell,
    pad_sequence,
};
use keyway::optim::{Adam, AdamOptions, Optimizer};
use keyway::rng::{self, Generator};
use keyway::{DType, Result, Tensor, autograd};

/// The blocks of `expected.txt`: a name, then lines of values.
fn expected(name: &str) -> Vec<(&'static str, Vec<f64>)> {
    let block = include_str!("expected.txt").split("# ").find(|block| block.lines().next() == Some(name));
    let line = |line: &'static str| {
        let (name, values) = line.split_once(": ").unwrap();
        (name, values.split(' ').map(|value| value.parse().unwrap()).collect())
    };
    block.unwrap_or_else(|| panic!("no block `{name}`")).lines().skip(1).map(line).collect()
}

fn fill(sizes: &[usize], number: usize) -> Tensor {
    let value = |i: usize| 0.5 * (0.7 * i as f64 + 1.3 * number as f64).sin();
    Tensor::from_vec((0..sizes.iter().product()).map(value).collect::<Vec<f64>>(), sizes).unwrap()
}

/// The parameters in the order in which the module registers them, which is PyTorch's, with the values of `expected.py`.
fn prepared<M: Module>(module: M) -> M {
    module.to(DType::F64).unwrap();
    let _off = autograd::no_grad();
    for (number, parameter) in module.parameters().iter().enumerate() {
        parameter.copy_(&fill(parameter.shape(), number)).unwrap();
    }
    module
}

fn check(
    name: &str,
    module: &impl Module,
    run: impl FnOnce(&Tensor) -> Result<Vec<Tensor>>,
    sizes: &[usize],
) {
    let x = fill(sizes, 11).mul(2.0).unwrap().requires_grad_(true).unwrap();
    let made = run(&x).unwrap();
    let mut loss = Tensor::zeros_with((), DType::F64).unwrap();
    for (i, t) in made.iter().enumerate() {
        loss = loss.add(&fill(t.shape(), 7 + i).mul(t).unwrap().sum_all().unwrap()).unwrap();
    }
    loss.backward().unwrap();
    let sums = module.parameters().into_iter().map(|p| {
        let grad = p.grad().unwrap();
        grad.mul(&fill(p.shape(), 3)).unwrap().sum_all().unwrap().item::<f64>().unwrap()
    });
    let sums: Vec<f64> = sums.collect();
    let mut all: Vec<Vec<f64>> = made.iter().map(|t| t.to_vec_f64().unwrap()).collect();
    all.extend([x.grad().unwrap().to_vec_f64().unwrap(), sums]);
    let expected = expected(name);
    assert_eq!(expected.len(), all.len(), "{name}");
    for ((what, expected), got) in expected.iter().zip(&all) {
        assert_eq!(expected.len(), got.len(), "{name}: {what}");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + a.abs());
        assert!(expected.iter().zip(got).all(near), "{name}: {what}\n{expected:?}\n{got:?}");
    }
}

fn parts((output, state): (Tensor, LstmState)) -> Vec<Tensor> {
    vec![output, state.hidden, state.cell]
}

const X: [usize; 3] = [3, 2, 2];

#[test]
fn simple_layers_are_as_in_pytorch() {
    let rnn = prepared(Rnn::new(2, 3).unwrap());
    check("rnn", &rnn, |x| rnn.forward_with(x, None).map(|(y, h)| vec![y, h]), &X);
    let options = RecurrentOptions { bias: false, ..Default::default() };
    let relu = prepared(Rnn::with_options(2, 3, options).unwrap().relu());
    check("rnn relu", &relu, |x| relu.forward_with(x, None).map(|(y, h)| vec![y, h]), &X);
}

#[test]
fn gated_layers_are_as_in_pytorch() {
    let gru = prepared(Gru::new(2, 2).unwrap());
    let h = fill(&[1, 2, 2], 5);
    check("gru", &gru, |x| gru.forward_with(x, Some(&h)).map(|(y, h)| vec![y, h]), &X);
    let lstm = prepared(Lstm::new(2, 2).unwrap());
    let state = LstmState { hidden: h, cell: fill(&[1, 2, 2], 6) };
    check("lstm", &lstm, |x| lstm.forward_with(x, Some(&state)).map(parts), &X);
    let options =
        RecurrentOptions { num_layers: 2, bidirectional: true, batch_first: true, ..Default::default() };
    let projected = prepared(Lstm::with_projection(2, 3, 2, options).unwrap());
    check("lstm projected", &projected, |x| projected.forward_with(x, None).map(parts), &X);
}

#[test]
fn sequences_of_several_lengths_are_as_in_pytorch() {
    let options = RecurrentOptions { bidirectional: true, ..Default::default() };
    let gru = prepared(Gru::with_options(2, 2, options).unwrap());
    let run = |x: &Tensor| {
        let packed = PackedSequence::from_padded(x, &[1, 3], false)?;
        let (y, h) = gru.forward_packed(&packed, Some(&fill(&[2, 2, 2], 5)))?;
        Ok(vec![y.data().clone(), h])
    };
    check("gru packed", &gru, run, &X);
    let lstm = prepared(Lstm::with_options(2, 2, RecurrentOptions { num_layers: 2, ..options }).unwrap());
    let run = |x: &Tensor| {
        let (y, state) = lstm.forward_packed(&PackedSequence::from_padded(x, &[2, 4, 1], false)?, None)?;
        Ok(parts((y.data().clone(), state)))
    };
    check("lstm packed", &lstm, run, &[4, 3, 2]);
}

#[test]
fn packed_sequences_have_the_results_of_each_alone() {
    let options =
        RecurrentOptions { num_layers: 2, bidirectional: true, batch_first: true, ..Default::default() };
    let lstm = prepared(Lstm::with_options(3, 4, options).unwrap());
    let lengths = [2, 5, 3, 5, 1];
    let alone: Vec<Tensor> = lengths.iter().enumerate().map(|(i, &n)| fill(&[n, 3], i)).collect();
    let packed = PackedSequence::from_sequences(&alone).unwrap();
    let (output, state) = lstm.forward_packed(&packed, None).unwrap();
    let (padded, back) = output.to_padded(true, 7.0).unwrap();
    assert_eq!((padded.shape(), &back[..]), (&[5, 5, 8][..], &lengths[..]));
    for (i, sequence) in alone.iter().enumerate() {
        let (y, own) = lstm.forward_with(sequence, None).unwrap();
        let row = padded.select(0, i).unwrap();
        assert!(row.narrow(0, 0, lengths[i]).unwrap().allclose(&y).unwrap(), "sequence {i}");
        let padding = row.narrow(0, lengths[i], 5 - lengths[i]).unwrap().to_vec_f64().unwrap();
        assert!(padding.iter().all(|&value| value == 7.0), "sequence {i}");
        assert!(state.hidden.select(1, i).unwrap().allclose(&own.hidden).unwrap(), "sequence {i}");
        assert!(state.cell.select(1, i).unwrap().allclose(&own.cell).unwrap(), "sequence {i}");
    }
}

#[test]
fn a_cell_is_one_step_of_its_layer() {
    let (x, h, c) = (fill(&[2, 3], 1), fill(&[2, 4], 2), fill(&[2, 4], 3));
    let one = |t: &Tensor| t.unsqueeze(0).unwrap();
    let same = |cell: &dyn Module, layer: &dyn Module| {
        let named = cell.state_dict().into_iter().map(|(name, t)| (format!("{name}_l0"), t)).collect();
        layer.load_state_dict(&named).unwrap();
    };
    let (cell, layer) = (prepared(GruCell::new(3, 4).unwrap()), prepared(Gru::new(3, 4).unwrap()));
    same(&cell, &layer);
    let (y, _) = layer.forward_with(&one(&x), Some(&one(&h))).unwrap();
    assert!(cell.forward_with(&x, Some(&h)).unwrap().allclose(&y.squeeze(0).unwrap()).unwrap());
    let (cell, layer) = (prepared(RnnCell::new(3, 4).unwrap()), prepared(Rnn::new(3, 4).unwrap()));
    same(&cell, &layer);
    let (y, _) = layer.forward_with(&one(&x), Some(&one(&h))).unwrap();
    assert!(cell.forward_with(&x, Some(&h)).unwrap().allclose(&y.squeeze(0).unwrap()).unwrap());
    let (cell, layer) = (prepared(LstmCell::new(3, 4).unwrap()), prepared(Lstm::new(3, 4).unwrap()));
    same(&cell, &layer);
    let state = LstmState { hidden: one(&h), cell: one(&c) };
    let (_, last) = layer.forward_with(&one(&x), Some(&state)).unwrap();
    let next = cell.forward_with(&x, Some(&LstmState { hidden: h, cell: c })).unwrap();
    assert!(next.hidden.allclose(&last.hidden.squeeze(0).unwrap()).unwrap());
    assert!(next.cell.allclose(&last.cell.squeeze(0).unwrap()).unwrap());
    // Without a batch.
    let alone = cell.forward_with(&x.select(0, 0).unwrap(), None).unwrap();
    assert!(alone.cell.allclose(&cell.forward_with(&x, None).unwrap().cell.select(0, 0).unwrap()).unwrap());
}

#[test]
fn dropout_acts_between_layers_in_training_alone() {
    let options = RecurrentOptions { num_layers: 2, dropout: 0.5, ..Default::default() };
    let gru = prepared(Gru::with_options(2, 3, options).unwrap().generator(Generator::new(7)));
    let x = fill(&X, 1);
    let first = gru.forward(&x).unwrap();
    assert!(!first.allclose(&gru.forward(&x).unwrap()).unwrap());
    gru.eval();
    let plain = RecurrentOptions { dropout: 0.0, ..options };
    let same = prepared(Gru::with_options(2, 3, plain).unwrap());
    assert!(gru.forward(&x).unwrap().allclose(&same.forward(&x).unwrap()).unwrap());
}

#[test]
fn an_lstm_learns_to_remember_the_first_step() {
    let (lstm, head) = rng::with_generator(&Generator::new(1), || -> Result<_> {
        Ok((Lstm::new(1, 16)?, keyway::nn::Linear::new(16, 1)?))
    })
    .unwrap();
    let parameters = [lstm.parameters(), head.parameters()].concat();
    let mut optimizer = Adam::new(parameters, AdamOptions { lr: 0.03, ..Default::default() }).unwrap();
    let signs = |seed: u64| {
        let draw = || Tensor::rand((5, 32, 1)).unwrap().lt(0.5).unwrap().to_dtype(DType::F32).unwrap();
        rng::with_generator(&Generator::new(seed), draw).mul(2.0).unwrap().sub(1.0).unwrap()
    };
    let loss = |seed: u64| -> Result<Tensor> {
        let x = signs(seed);
        let (output, _) = lstm.forward_with(&x, None)?;
        head.forward(&output.select(0, -1)?)?.mse_loss(&x.select(0, 0)?)
    };
    let before = loss(1000).unwrap().item::<f32>().unwrap();
    for step in 0..150 {
        optimizer.zero_grad();
        loss(step).unwrap().backward().unwrap();
        optimizer.step().unwrap();
    }
    let after = loss(1000).unwrap().item::<f32>().unwrap();
    assert!(before > 0.8 && after < 0.1, "{before} to {after}");
}

#[test]
fn wrong_input_is_named() {
    let gru = Gru::new(3, 4).unwrap();
    let fails = |made: Result<(Tensor, Tensor)>, part: &str| {
        let error = made.unwrap_err().to_string();
        assert!(error.contains("Gru") && error.contains(part), "`{error}` lacks `{part}`");
    };
    let x = Tensor::ones((5, 2, 3)).unwrap();
    fails(gru.forward_with(&Tensor::ones((5, 2, 4)).unwrap(), None), "[length, batch, 3]");
    fails(gru.forward_with(&Tensor::ones(3).unwrap(), None), "[length, batch, 3]");
    fails(gru.forward_with(&Tensor::ones((0, 2, 3)).unwrap(), None), "1 step or more");
    fails(
        gru.forward_with(&x, Some(&Tensor::ones((1, 3, 4)).unwrap())),
        "`state` must be of shape [1, 2, 4]",
    );
    let (one, three) = (x.select(1, 0).unwrap(), Tensor::ones((1, 1, 4)).unwrap());
    fails(
        gru.forward_with(&one, Some(&three)),
        "`state` must be of shape [1, 4], but its shape is [1, 1, 4]",
    );
    let lstm = Lstm::new(3, 4).unwrap();
    let state =
        LstmState { hidden: Tensor::ones((1, 2, 4)).unwrap(), cell: Tensor::ones((1, 2, 3)).unwrap() };
    let error = lstm.forward_with(&x, Some(&state)).unwrap_err().to_string();
    assert!(error.contains("`state.cell` must be of shape [1, 2, 4]"), "{error}");
    let packed = PackedSequence::from_padded(&Tensor::ones((5, 2, 7)).unwrap(), &[5, 1], false).unwrap();
    let error = gru.forward_packed(&packed, None).unwrap_err().to_string();
    assert!(error.contains("steps of 3 elements, got shape [7]"), "{error}");
    for error in [GruCell::new(3, 0).unwrap_err(), LstmCell::without_bias(3, 0).unwrap_err()] {
        assert!(error.to_string().contains("`hidden`"), "{error}");
    }
    let error = GruCell::new(3, 4).unwrap().forward_with(&one, Some(&one)).unwrap_err().to_string();
    assert!(error.contains("`state` must be of shape [5, 4]"), "{error}");
    assert_eq!(gru.forward(&Tensor::ones((5, 0, 3)).unwrap()).unwrap().shape(), [5, 0, 4]);
    let option = |made: Result<Lstm>, part: &str| {
        let error = made.unwrap_err().to_string();
        assert!(error.contains("Lstm") && error.contains(part), "`{error}` lacks `{part}`");
    };
    let options = RecurrentOptions::default();
    option(Lstm::with_options(3, 4, RecurrentOptions { num_layers: 0, ..options }), "num_layers");
    option(Lstm::with_options(3, 4, RecurrentOptions { dropout: 1.5, ..options }), "dropout");
    option(Lstm::new(3, 0), "hidden");
    option(Lstm::with_projection(3, 4, 4, options), "projection");
    assert!(PackedSequence::from_padded(&x, &[5], false).is_err());
    assert!(PackedSequence::from_padded(&x, &[5, 0], false).is_err());
    assert!(pad_sequence::<Tensor>(&[], false, 0.0).is_err());
    assert!(
        pad_sequence(&[Tensor::ones((2, 3)).unwrap(), Tensor::ones((2, 4)).unwrap()], false, 0.0).is_err()
    );
    assert!(pad_sequence(&[Tensor::ones(()).unwrap()], false, 0.0).is_err());
}
