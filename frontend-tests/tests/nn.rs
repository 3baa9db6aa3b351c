//! Modules: names, state, modes, moves; and a model that learns the digits.
use keyway::data::{DataLoader, Dataset, Digits};
use keyway::nn::{
    AttentionOptions, BatchNorm1d, Buffer, Dropout, Flatten, KvCache, LayerNorm, Linear, Module,
    ModuleVisitor, MultiheadAttention, Parameter, Relu, Sequential, StateDict, functional,
};
use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{DType, Result, Tensor, autograd, io, nn};

fn mlp(seed: u64) -> Sequential {
    let layers = || Ok((Linear::new(64, 128)?, Linear::new(128, 10)?));
    let (first, last) = seeded(seed, layers).unwrap();
    Sequential::new().push(first).push(Relu).push(last)
}

fn seeded<R>(seed: u64, body: impl FnOnce() -> Result<R>) -> Result<R> {
    rng::with_generator(&Generator::new(seed), body)
}

fn accuracy(model: &dyn Module, data: &impl Dataset) -> f64 {
    let _off = autograd::no_grad();
    let all: Vec<usize> = (0..data.len()).collect();
    let batch = data.batch(&all).unwrap();
    let scores = model.forward(&batch.inputs).unwrap().to_vec::<f32>().unwrap();
    let labels = batch.targets.to_vec::<i64>().unwrap();
    let best = |row: &[f32]| (0..10).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as i64;
    let right = scores.chunks(10).zip(&labels).filter(|(row, label)| best(row) == **label).count();
    right as f64 / labels.len() as f64
}

fn train(model: &Sequential, epochs: u64) {
    let (train, _) = Digits::train_test().unwrap();
    let loader = DataLoader::new(train, 32).unwrap().shuffle(0);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, weight_decay: 1e-3, ..Default::default() };
    let mut optimizer = Sgd::new(model.parameters(), options).unwrap();
    let mut schedule = CosineAnnealingLr::new(&optimizer, epochs).unwrap();
    for epoch in 0..epochs {
        for batch in loader.epoch(epoch) {
            let batch = batch.unwrap();
            optimizer.zero_grad();
            let scores = model.forward(&batch.inputs).unwrap();
            functional::cross_entropy(&scores, &batch.targets).unwrap().backward().unwrap();
            optimizer.step().unwrap();
        }
        schedule.step(&mut optimizer).unwrap();
    }
}

#[test]
fn an_mlp_learns_the_digits_and_does_so_again() {
    let (_, test) = Digits::train_test().unwrap();
    let model = mlp(0);
    train(&model, 60);
    let reached = accuracy(&model, &test);
    assert!(reached >= 0.91, "test accuracy {reached}");

    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1.safetensors"), folder.path().join("2.safetensors"));
    io::safetensors::save(&one, &model.state_dict()).unwrap();
    let other = mlp(7);
    other.load_state_dict(&io::safetensors::load(&one).unwrap()).unwrap();
    assert_eq!(accuracy(&other, &test), reached);
    let again = mlp(0);
    train(&again, 60);
    io::safetensors::save(&two, &again.state_dict()).unwrap();
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap());
}

#[test]
fn initial_values_are_pytorchs_distribution_and_the_seeds() {
    let layer = seeded(3, || Linear::new(100, 400)).unwrap();
    for values in [layer.weight(), layer.bias().unwrap()] {
        let values = values.to_vec::<f32>().unwrap();
        assert!(values.iter().all(|v| v.abs() <= 0.1));
        assert!(values.iter().any(|&v| v > 0.095) && values.iter().any(|&v| v < -0.095));
    }
    let weight = |layer: Linear| layer.weight().to_vec::<f32>().unwrap();
    let [same, other] = [3, 4].map(|seed| weight(seeded(seed, || Linear::new(100, 400)).unwrap()));
    let first = weight(layer);
    assert_eq!(first, same);
    assert_ne!(first, other);
    assert_ne!(weight(Linear::new(100, 400).unwrap()), weight(Linear::new(100, 400).unwrap()));
    // The elements of a random tensor at the same offset of the stream.
    let drawn = seeded(3, || Tensor::rand((400, 100))).unwrap().to_vec::<f32>().unwrap();
    assert!(first.iter().zip(drawn).all(|(v, u)| (v - (0.2 * u - 0.1)).abs() < 1e-7));
    let normal = |draw: &dyn Fn() -> Result<Tensor>| seeded(3, draw).unwrap().to_vec::<f32>().unwrap();
    let (ours, drawn) = (normal(&|| nn::init::normal((5, 7), 1.0)), normal(&|| Tensor::randn((5, 7))));
    assert!(ours.iter().zip(drawn).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn a_state_dict_that_does_not_fit_changes_nothing() {
    let model = mlp(0);
    let before = model.state_dict()["0.weight"].to_vec::<f32>().unwrap();
    let mut state: StateDict =
        mlp(1).state_dict().into_iter().map(|(name, t)| (name, t.copy().unwrap())).collect();
    let removed = state.remove("2.bias").unwrap();
    state.insert("2.offset".into(), removed);
    state.insert("2.weight".into(), Tensor::from_vec(vec![0.0f32; 6], [2, 3]).unwrap());
    let error = model.load_state_dict(&state).unwrap_err().to_string();
    for part in [
        "1 missing: 2.bias",
        "1 unexpected: 2.offset",
        "2.weight (expected [10, 128], got [2, 3])",
        "nothing was loaded",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(model.state_dict()["0.weight"].to_vec::<f32>().unwrap(), before);
    state.remove("2.weight");
    let report = model.load_matching(&state).unwrap();
    assert_eq!(
        (report.missing, report.unexpected),
        (vec!["2.bias".into(), "2.weight".into()], vec!["2.offset".into()])
    );
    assert_ne!(model.state_dict()["0.weight"].to_vec::<f32>().unwrap(), before);
}

/// Two layers that share a weight, and a buffer.
struct Tied {
    first: Parameter,
    second: Parameter,
    count: Buffer,
}

impl Module for Tied {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.mul(&self.first.get())?.mul(&self.second.get())
    }
    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        visitor.parameter("first", &self.first);
        visitor.parameter("second", &self.second);
        visitor.buffer("count", &self.count);
    }
}

#[test]
fn a_shared_parameter_counts_once_and_stays_shared() {
    let weight = Tensor::new([1.0f32, 2.0]).unwrap();
    let tied = Tied {
        first: Parameter::new(weight.clone()).unwrap(),
        second: Parameter::new(weight).unwrap(),
        count: Buffer::new(Tensor::new(0i64).unwrap()),
    };
    assert_eq!((tied.parameters().len(), tied.num_parameters(), tied.state_dict().len()), (1, 2, 3));
    tied.to_dtype(DType::F64).unwrap();
    assert!(tied.first.get().ptr_eq(&tied.second.get()));
    assert_eq!((tied.first.get().dtype(), tied.count.get().dtype()), (DType::F64, DType::I64));
    assert!(tied.first.get().requires_grad() && tied.first.get().is_leaf());
    tied.forward(&Tensor::new(1.0f64).unwrap()).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(tied.parameters()[0].grad().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0]);
    tied.zero_grad();
    assert!(tied.parameters()[0].grad().is_none());
}

#[test]
fn modes_reach_every_part() {
    let model =
        Sequential::new().push(Flatten::default()).push(Sequential::new().push(Dropout::new(0.5).unwrap()));
    let x = Tensor::from_vec(vec![1.0f32; 64], [2, 2, 16]).unwrap();
    let run = || model.forward(&x).unwrap().to_vec::<f32>().unwrap();
    assert_ne!(run(), [1.0; 64]);
    assert_ne!(run(), run(), "each call has a mask of its own");
    model.eval();
    assert_eq!(run(), [1.0; 64]);
    model.train();
    assert_ne!(run(), [1.0; 64]);
    assert!(Dropout::new(1.5).unwrap_err().to_string().contains("`p` to be within 0..=1, got 1.5"));
}

#[test]
fn layer_norm_and_losses_are_pytorchs() {
    let norm = LayerNorm::new(3).unwrap();
    let y = norm.forward(&Tensor::new([1.0f32, 2.0, 4.0]).unwrap()).unwrap().to_vec::<f32>().unwrap();
    let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-5, "{a} {b}");
    y.iter().zip([-1.069043, -0.267261, 1.336304]).for_each(|(&a, b)| near(a, b));
    let scores = Tensor::from_vec(vec![1.0f32, 2.0, 0.5, -1.0, 300.0, 2.0], [2, 3]).unwrap();
    let target = Tensor::new([0i64, 1]).unwrap();
    near(functional::cross_entropy(&scores, &target).unwrap().item().unwrap(), 0.732184);
    let t = Tensor::from_vec(vec![1.0f32, 0.0, 0.5, 1.0, 1.0, 0.0], [2, 3]).unwrap();
    let bce = functional::binary_cross_entropy_with_logits(&scores, &t).unwrap();
    near(bce.item().unwrap(), (0.313262 + 2.126928 + 0.724077 + 1.313262 + 0.0 + 2.126928) / 6.0);
    let wrong = functional::mse_loss(&scores, &target).unwrap_err().to_string();
    assert!(wrong.contains("of the target's shape [2], got shape [2, 3]"), "{wrong}");
    let wrong = functional::cross_entropy(&scores, &Tensor::new([0i64]).unwrap());
    assert!(wrong.unwrap_err().to_string().contains("of shape [2], that of the input without its classes"));
}

/// A network whose training draws from two generators and keeps running statistics.
fn random_net() -> Sequential {
    let (first, second) = seeded(3, || Ok((Linear::new(64, 16)?, Linear::new(16, 10)?))).unwrap();
    let dropout = |p, seed| Dropout::new(p).unwrap().generator(Generator::new(seed));
    Sequential::new()
        .push(first)
        .push(BatchNorm1d::new(16).unwrap())
        .push(dropout(0.3, 5))
        .push(second)
        .push_named("last", dropout(0.1, u64::MAX))
}

/// Epochs `from` to `to` of a training of 4 epochs, with another order in each.
fn epochs(model: &Sequential, optimizer: &mut Sgd, from: u64, to: u64) {
    let (train, _) = Digits::train_test().unwrap();
    let loader = DataLoader::new(train, 128).unwrap().shuffle(2);
    let mut schedule = CosineAnnealingLr::new(optimizer, 4).unwrap();
    schedule.seek(from, optimizer).unwrap();
    for epoch in from..to {
        for batch in loader.epoch(epoch) {
            let batch = batch.unwrap();
            optimizer.zero_grad();
            let scores = model.forward(&batch.inputs).unwrap();
            functional::cross_entropy(&scores, &batch.targets).unwrap().backward().unwrap();
            optimizer.step().unwrap();
        }
        schedule.step(optimizer).unwrap();
    }
}

fn momentum_of(model: &Sequential) -> Sgd {
    let options = SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    Sgd::new(model.parameters(), options).unwrap()
}

#[test]
fn a_training_is_taken_up_again_with_the_same_bits() {
    let bits = |model: &Sequential| {
        let all = model.state_dict().into_iter().map(|(name, t)| (name, t.to_vec_f64().unwrap()));
        all.map(|(name, t)| (name, t.into_iter().map(f64::to_bits).collect::<Vec<_>>())).collect::<Vec<_>>()
    };
    let whole = random_net();
    epochs(&whole, &mut momentum_of(&whole), 0, 4);

    let first = random_net();
    let mut optimizer = momentum_of(&first);
    epochs(&first, &mut optimizer, 0, 2);
    let saved = [first.state_dict(), optimizer.state_dict().unwrap(), first.generator_state_dict().unwrap()];
    let folder = tempfile::tempdir().unwrap();
    let loaded = saved.map(|state| {
        let path = folder.path().join("part.safetensors");
        io::safetensors::save(&path, &state).unwrap();
        io::safetensors::load(&path).unwrap()
    });

    let second = random_net();
    let mut optimizer = momentum_of(&second);
    second.load_state_dict(&loaded[0]).unwrap();
    let unseeded = bits(&second);
    optimizer.load_state_dict(&loaded[1]).unwrap();
    // The schedule is made from the first rate, which the optimiser's state has changed.
    optimizer.set_learning_rates(&[0.1]).unwrap();
    second.load_generator_state_dict(&loaded[2]).unwrap();
    epochs(&second, &mut optimizer, 2, 4);
    assert_eq!(bits(&second), bits(&whole));

    // Without the generators' states the result is another one.
    second.load_state_dict(&loaded[0]).unwrap();
    assert_eq!(bits(&second), unseeded);
    optimizer.load_state_dict(&loaded[1]).unwrap();
    optimizer.set_learning_rates(&[0.1]).unwrap();
    epochs(&second, &mut optimizer, 2, 4);
    assert_ne!(bits(&second), bits(&whole));
}

#[test]
fn states_of_generators_have_names_and_must_fit() {
    let model = random_net();
    let names: Vec<String> = model.named_generators().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["2.generator", "last.generator"]);
    let _used = model.named_generators()[0].1.reserve(9);
    let state = model.generator_state_dict().unwrap();
    assert_eq!(state["2.generator"].to_vec::<i64>().unwrap(), [5, 9]);
    assert!(!model.state_dict().keys().any(|name| name.contains("generator")));

    let before = |state: &StateDict| {
        let error = model.load_generator_state_dict(state).unwrap_err().to_string();
        assert_eq!(model.named_generators()[0].1.state().offset, 9, "{error}");
        error
    };
    let mut wrong = state.clone();
    let other = wrong.remove("last.generator").unwrap();
    wrong.insert("first.generator".to_string(), other);
    wrong.insert("2.generator".to_string(), Tensor::new([1i64, 2]).unwrap());
    let error = before(&wrong);
    assert!(error.contains("1 missing: last.generator; 1 unexpected: first.generator"), "{error}");
    for odd in [Tensor::new([1i64]).unwrap(), Tensor::new([1.0f32, 2.0]).unwrap()] {
        let mut wrong = state.clone();
        wrong.insert("2.generator".to_string(), Tensor::new([1i64, 2]).unwrap());
        wrong.insert("last.generator".to_string(), odd);
        let error = before(&wrong);
        assert!(error.contains("[2]") || error.contains("i64"), "{error}");
    }
}

/// With blocks of any length, attention with the cache equals attention over all positions in one call.
#[test]
fn a_cache_gives_what_causal_attention_gives() {
    let attention = MultiheadAttention::new(12, 3).unwrap();
    let x = Tensor::randn((2, 23, 12)).unwrap();
    let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    let expected = attention.forward_qkv(&x, &x, &x, causal).unwrap().to_vec::<f32>().unwrap();
    let _off = keyway::no_grad();
    let mut cache = KvCache::new();
    for blocks in [vec![1; 23], vec![23], vec![5, 1, 9, 0, 8], vec![7, 16]] {
        cache.truncate(0);
        let (mut made, mut at) = (Vec::new(), 0);
        for block in blocks {
            let part = x.narrow(1, at, block).unwrap();
            made.push(attention.forward_cached(&part, &mut cache).unwrap());
            at += block;
            assert_eq!(cache.len(), at);
        }
        let made = Tensor::cat(&made, 1).unwrap().to_vec::<f32>().unwrap();
        let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
        assert!(made.iter().zip(&expected).all(near));
    }
    // Another ending of the same text.
    cache.truncate(20);
    let again = attention.forward_cached(&x.narrow(1, 20, 3).unwrap(), &mut cache).unwrap();
    let last = again.to_vec::<f32>().unwrap();
    assert!(last[..36].iter().zip(&expected[20 * 12..23 * 12]).all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn what_a_cache_refuses() {
    let attention = MultiheadAttention::new(8, 2).unwrap();
    let ones = |sizes: [usize; 3]| Tensor::ones(sizes).unwrap();
    let mut cache = KvCache::new();
    let text = attention.forward_cached(&ones([1, 1, 8]), &mut cache).unwrap_err().to_string();
    assert!(text.contains("inside `no_grad`"), "{text}");
    let _off = keyway::no_grad();
    attention.forward_cached(&ones([2, 3, 8]), &mut cache).unwrap();
    let text = attention.forward_cached(&ones([1, 1, 8]), &mut cache).unwrap_err().to_string();
    assert!(text.contains("([2, 2, 4], f32, cpu)") && text.contains("([1, 2, 4], f32, cpu)"), "{text}");
    assert!(attention.forward_cached(&ones([2, 1, 9]), &mut cache).is_err());
    assert!(attention.forward_cached(&Tensor::ones(8).unwrap(), &mut cache).is_err());
    let heads = |batch, width| Tensor::ones((batch, 2, 1, width)).unwrap();
    let text = cache.append(&heads(2, 4), &heads(2, 5)).unwrap_err().to_string();
    assert!(text.contains("the new values") && text.contains("([2, 2, 5], f32, cpu)"), "{text}");
    let text = cache.append(&heads(2, 4), &heads(1, 4)).unwrap_err().to_string();
    assert!(text.contains("[2, 2, 1, width]") && text.contains("[1, 2, 1, 4]"), "{text}");
    let text = cache.append(&ones([2, 1, 4]), &heads(2, 4)).unwrap_err().to_string();
    assert!(text.contains("keys of shape [batch, heads, new, head width]"), "{text}");
    let text = cache.append(&heads(2, 4), &Tensor::ones(()).unwrap()).unwrap_err().to_string();
    assert!(text.contains("values of shape [2, 2, 1, width]") && text.contains("[]"), "{text}");
    assert_eq!(cache.len(), 3);
    // An empty cache takes any batch.
    cache.truncate(0);
    assert!(cache.is_empty());
    attention.forward_cached(&ones([1, 1, 8]), &mut cache).unwrap();
}

#[test]
fn a_parameter_by_name_is_the_one_that_learns() -> Result<()> {
    let net = Sequential::new().push(Linear::new(2, 3)?).push(Linear::new(3, 1)?);
    let weight = net.get_parameter("1.weight")?;
    net.forward(&Tensor::ones((1, 2))?)?.sum_all()?.backward()?;
    assert!(weight.grad().is_some() && weight.ptr_eq(&net.get_parameter("1.weight")?));
    assert!(!net.state_dict()["1.weight"].requires_grad());
    let said = net.get_parameter("weight").unwrap_err().to_string();
    assert!(said.contains("0.weight, 0.bias, 1.weight, 1.bias, got `weight`"), "{said}");
    Ok(())
}
