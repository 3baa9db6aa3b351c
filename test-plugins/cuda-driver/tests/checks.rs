//! Wrong indices if no call waits for the check: in captured work, and if the program requests it.

mod support;

use keyway::nn::BagOptions;
use keyway::nn::{Linear, Module};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::rng::{self, Generator};
use keyway::{Device, Result, Tensor, graph};
use keyway_dispatcher::device::synchronize;
use support::{counted, cuda, load, message, ramp, run, stand_in};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("captured") => captured(false),
        Some("now") => captured(true),
        Some("later") => later(),
        Some("training") => training(),
        Some("bags") => bags(),
        Some("steps") => steps(),
        Some(other) => panic!("there is no scenario {other}"),
    }
}

/// An op that reads indices: the op that checks them, the argument, the noun for an index, and a call with five rows of
/// three numbers and four indices below 3.
type Op = (&'static str, &'static str, &'static str, fn(&Tensor, &Tensor) -> Result<Tensor>);

const OPS: [Op; 13] = [
    ("index_select", "index", "index", |x, at| x.index_select(0, at)),
    ("gather", "index", "index", |x, at| x.gather(0, &at.unsqueeze(1)?)),
    ("embedding", "indices", "index", |x, at| x.embedding(at)),
    ("index", "indices", "index", |x, at| x.index(&[Some(at)])),
    ("scatter", "index", "index", |x, at| x.scatter(0, &at.unsqueeze(1)?, x)),
    ("scatter_add", "index", "index", |x, at| x.scatter_add(0, &at.unsqueeze(1)?, x)),
    ("index_copy", "index", "index", |x, at| x.index_copy(0, at, &x.narrow(0, 0, 4)?)),
    ("index_add", "index", "index", |x, at| x.index_add(0, at, &x.narrow(0, 0, 4)?)),
    ("index_put", "indices", "index", |x, at| x.index_put_with(&[Some(at)], &x.narrow(0, 0, 4)?, true)),
    ("one_hot", "self", "index", |_, at| at.one_hot(5)),
    ("nll_loss_forward", "target", "class", |x, at| x.narrow(0, 0, 4)?.cross_entropy(at)),
    ("nll_loss", "target", "class", |x, at| x.narrow(0, 0, 4)?.nll_loss(at)),
    ("embedding_bag", "indices", "index", |x, at| x.embedding_bag(&at.reshape((2, 2))?)),
];

/// Indices that are far out of range.
const WRONG: [i64; 2] = [1 << 40, -77];

fn at(numbers: [i64; 4]) -> Tensor {
    Tensor::new(numbers).unwrap().to_device(cuda(0)).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec_f64().unwrap()
}

/// Checks the text of an error that is reported later.
#[track_caller]
fn says(text: &str, (op, argument, noun, _): Op, wrong: i64) {
    let parts =
        [format!("`{op}`"), format!("`{argument}`"), format!("{noun} {wrong}"), "INDEX_CHECKS".into()];
    assert!(parts.iter().all(|part| text.contains(part.as_str())), "{op}: {text}");
}

/// A replay behaves as a call. With a wrong index the next synchronization fails, or the replay if it synchronizes; then
/// everything works again.
fn captured(waits: bool) {
    load();
    let d = cuda(0);
    let x = ramp(&[5, 3]).to_device(d).unwrap();
    for op in OPS {
        let (name, _, noun, call) = op;
        let given = at([2, 0, 2, 1]);
        let expected = [[2, 0, 2, 1], [1, 1, 0, 2]].map(|to| numbers(&call(&x, &at(to)).unwrap()));
        let (made, graph) = graph::capture(d, || call(&x, &given)).unwrap();
        graph.replay().unwrap();
        assert_eq!(numbers(&made), expected[0], "{name}");
        for wrong in WRONG {
            given.copy_(&at([0, wrong, 2, 1])).unwrap();
            let text = if waits {
                message(graph.replay())
            } else {
                graph.replay().unwrap();
                message(synchronize(d).map_err(keyway::Error::from))
            };
            says(&text, op, wrong);
            // The error was reported once.
            synchronize(d).unwrap();
            given.copy_(&at([1, 1, 0, 2])).unwrap();
            graph.replay().unwrap();
            assert_eq!(numbers(&made), expected[1], "{name}");
            // A call outside of the graph has its own error.
            let text = message(call(&x, &at([0, wrong, 2, 1])));
            assert!(text.contains(&format!("{noun} {wrong}")), "{name}: {text}");
        }
        // With no rows, every index is out of range.
        let none = Tensor::zeros_with((0, 3), d).unwrap();
        if noun == "index" && name != "one_hot" && name != "scatter" && name != "scatter_add" {
            let text = message(graph::capture(d, || none.index_select(0, &given)));
            assert!(text.contains("indices in 0..0"), "{name}: {text}");
        }
    }
}

/// A call does not wait: reading its result is the error.
fn later() {
    load();
    let x = ramp(&[5, 3]).to_device(cuda(0)).unwrap();
    for op in OPS {
        let (name, .., call) = op;
        let expected = numbers(&call(&x, &at([1, 1, 0, 2])).unwrap());
        for wrong in WRONG {
            let made = call(&x, &at([0, wrong, 2, 1])).unwrap();
            says(&message(made.to_vec_f64()), op, wrong);
            made.to_vec_f64().unwrap();
            assert_eq!(numbers(&call(&x, &at([1, 1, 0, 2])).unwrap()), expected, "{name}");
        }
    }
}

/// Bags whose offsets are on the device.
fn bags() {
    load();
    let d = cuda(0);
    let x = ramp(&[5, 3]).to_device(d).unwrap();
    for last in [false, true] {
        let (given, begins) = (at([2, 0, 2, 1]), Tensor::new([0i64, 1, 3]).unwrap().to_device(d).unwrap());
        let call = || {
            let options =
                BagOptions { offsets: Some(&begins), include_last_offset: last, ..BagOptions::default() };
            x.embedding_bag_with(&given, options)
        };
        let (made, graph) = graph::capture(d, call).unwrap();
        for offsets in [[0, 1, 3], [0, 0, 2], [0, 4, 4]] {
            begins.copy_(&Tensor::new(offsets).unwrap().to_device(d).unwrap()).unwrap();
            graph.replay().unwrap();
            assert_eq!(numbers(&made), numbers(&call().unwrap()), "{offsets:?} {last}");
        }
        for (offsets, wrong) in [([0i64, 2, 1], 1), ([0, 1, 5], 5), ([1, 2, 3], 1), ([0, -9, 3], -9)] {
            begins.copy_(&Tensor::new(offsets).unwrap().to_device(d).unwrap()).unwrap();
            graph.replay().unwrap();
            let text = message(synchronize(d).map_err(keyway::Error::from));
            assert!(text.contains("`offsets`") && text.contains(&format!("offset {wrong}")), "{text}");
            assert!(call().is_err());
        }
        // Indices after the last bag are not read, so they are not checked.
        begins.copy_(&Tensor::new([0i64, 1, 3]).unwrap().to_device(d).unwrap()).unwrap();
        given.copy_(&at([2, 0, 2, WRONG[0]])).unwrap();
        graph.replay().unwrap();
        assert_eq!(synchronize(d).is_ok(), last);
        assert_eq!(call().is_ok(), last);
    }
}

/// A word classifier: an embedding table, a linear layer, and an optimizer.
struct Words {
    layer: Linear,
    table: Tensor,
    optimizer: Sgd,
    words: Tensor,
    classes: Tensor,
}

impl Words {
    fn new(device: Device) -> Words {
        let layer = rng::with_generator(&Generator::new(3), || Linear::new(6, 4)).unwrap();
        layer.to_device(device).unwrap();
        let table = ramp(&[9, 6]).mul(0.1).unwrap().to_device(device).unwrap().requires_grad_(true).unwrap();
        let parameters = layer.parameters().into_iter().chain([table.clone()]).collect();
        let options = SgdOptions { lr: 0.05, momentum: 0.9, ..SgdOptions::default() };
        let optimizer = Sgd::new(parameters, options).unwrap();
        let [words, classes] = batch(0).map(|t| t.to_device(device).unwrap());
        Words { layer, table, optimizer, words, classes }
    }

    fn step(&mut self) -> Result<Tensor> {
        self.optimizer.zero_grad();
        let scores = self.layer.forward(&self.table.embedding(&self.words)?.tanh()?)?;
        let loss = scores.cross_entropy(&self.classes)?;
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }

    fn feed(&self, step: usize) {
        let device = self.words.device();
        let [words, classes] = batch(step).map(|t| t.to_device(device).unwrap());
        self.words.copy_(&words).unwrap();
        self.classes.copy_(&classes).unwrap();
    }

    fn bits(&self) -> Vec<u32> {
        let all = self.layer.parameters().into_iter().chain([self.table.clone()]);
        all.flat_map(|p| p.detach().to_vec::<f32>().unwrap()).map(f32::to_bits).collect()
    }
}

/// Twelve words and their classes.
fn batch(step: usize) -> [Tensor; 2] {
    [(9, 5), (4, 11)].map(|(n, by)| {
        let numbers = (0..12).map(|i| ((i * by + step * 7) % n) as i64).collect();
        Tensor::from_vec(numbers, 12).unwrap()
    })
}

/// A captured step of a classifier has the bits of the step, and a wrong class is an error of the next wait.
fn training() {
    const STEPS: usize = 8;
    load();
    let d = cuda(0);
    let mut eager = Words::new(d);
    let mut losses = Vec::new();
    for step in 0..STEPS {
        eager.feed(step);
        losses.push(eager.step().unwrap().item::<f32>().unwrap().to_bits());
    }
    let mut words = Words::new(d);
    assert_eq!(words.step().unwrap().item::<f32>().unwrap().to_bits(), losses[0]);
    let (loss, graph) = graph::capture(d, || words.step()).unwrap();
    for (step, expected) in losses.iter().enumerate().skip(1) {
        words.feed(step);
        graph.replay().unwrap();
        assert_eq!(loss.item::<f32>().unwrap().to_bits(), *expected, "step {step}");
    }
    assert_eq!(words.bits(), eager.bits());
    words.classes.fill_(4).unwrap();
    graph.replay().unwrap();
    let text = message(loss.item::<f32>());
    assert!(text.contains("`target`") && text.contains("class 4") && text.contains("0..4"), "{text}");
    assert!(text.contains("1 other check"), "{text}");
    assert!(loss.item::<f32>().is_ok());
}

/// Ten steps of a classifier; only the last loss is read.
fn steps() {
    load();
    let mut words = Words::new(cuda(0));
    let loss = (0..10).map(|_| words.step().unwrap()).last().unwrap();
    assert!(loss.item::<f32>().unwrap().is_finite());
}

#[test]
fn a_step_waits_for_its_indices_or_for_nothing() {
    let Some(driver) = stand_in() else { return };
    let copies = |machine: &[(&str, &str)]| counted("steps", &driver, machine)["cuMemcpyDtoHAsync_v2"];
    let (usual, later) = (copies(&[]), copies(&[("KEYWAY_CUDA_INDEX_CHECKS", "later")]));
    println!("{usual} copies to the host, or {later}");
    assert!(usual >= 10 * 3 && later == 1, "{usual} {later}");
}

#[test]
fn a_captured_op_with_a_wrong_index_is_an_error_of_the_next_wait_or_of_the_replay() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2"] {
        run("captured", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
    run("now", &driver, &[("KEYWAY_CUDA_INDEX_CHECKS", "now")]);
}

#[test]
fn a_call_that_does_not_wait_gives_its_error_where_the_result_is_read() {
    let Some(driver) = stand_in() else { return };
    run("later", &driver, &[("KEYWAY_CUDA_INDEX_CHECKS", "later")]);
}

#[test]
fn bags_that_begin_where_the_device_says_are_captured() {
    let Some(driver) = stand_in() else { return };
    run("bags", &driver, &[]);
}

#[test]
fn a_captured_step_of_a_classifier_has_the_bits_of_the_step() {
    let Some(driver) = stand_in() else { return };
    for seed in ["1", "2"] {
        run("training", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}
