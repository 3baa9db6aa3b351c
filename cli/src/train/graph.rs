//! `keyway train graph`: a graph convolution net on Zachary's karate club, with one labelled member of each side (T. N. Kipf
//! and M. Welling, "Semi-supervised classification with graph convolutional networks", 2017). The products with the graph are
//! those of a sparse matrix, forward and backward.

use super::{Options, outputs};
use crate::failure::Failure;
use crate::files::{self, Outputs};
use crate::installed::Choice;
use crate::machine;
use crate::profile;
use crate::screen::Screen;
use keyway::autograd::no_grad;
use keyway::data::karate::{Graph, INSTRUCTOR, OFFICER};
use keyway::data::karate_club;
use keyway::dispatcher::parallel;
use keyway::io::safetensors;
use keyway::nn::{StateDict, functional, init};
use keyway::optim::{Adam, AdamOptions, Optimizer};
use keyway::profiler::{self, Report};
use keyway::rng::{self, Generator};
use keyway::{Device, Result, Tensor};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Elements of a node's vector between the two layers.
const HIDDEN: usize = 16;
const EPOCHS: u32 = 200;
const LR: f64 = 0.01;

/// The results.
#[derive(Serialize)]
struct Results {
    dataset: &'static str,
    model: &'static str,
    nodes: usize,
    edges: usize,
    labelled: [usize; 2],
    epochs: u32,
    lr: f64,
    seed: u64,
    device: String,
    train_loss: Vec<f64>,
    /// Misclassified nodes.
    wrong: Vec<usize>,
    seconds: f64,
    profile: Option<Report>,
}

/// The adjacency matrix with self-loops, each edge divided by the square roots of the degrees of its two nodes.
fn normalised(graph: &Graph, device: Device) -> Result<Tensor> {
    let mut degrees = vec![1.0f32; graph.nodes];
    graph.edges.iter().flatten().for_each(|&node| degrees[node] += 1.0);
    let loops = (0..graph.nodes).map(|node| [node, node]);
    let both = graph.edges.iter().flat_map(|&[a, b]| [[a, b], [b, a]]);
    let edges: Vec<[usize; 2]> = loops.chain(both).collect();
    let ends = (0..2).flat_map(|end| edges.iter().map(move |edge| edge[end] as i64)).collect();
    let weights = edges.iter().map(|&[a, b]| (degrees[a] * degrees[b]).sqrt().recip()).collect();
    let indices = Tensor::from_vec(ends, [2, edges.len()])?.to_device(device)?;
    let values = Tensor::from_vec(weights, [edges.len()])?.to_device(device)?;
    Tensor::sparse_coo(&indices, &values, [graph.nodes, graph.nodes])?.coalesce()
}

/// A graph network of two layers. The features of the nodes are one-hot, so their product with the first layer's weight is that
/// weight.
struct Net {
    graph: Tensor,
    weights: [Tensor; 2],
}

impl Net {
    fn new(graph: &Graph, device: Device, seed: u64) -> Result<Net> {
        let weight = |sizes| init::xavier_uniform(sizes)?.to_device(device)?.requires_grad_(true);
        let weights = || Ok::<_, keyway::Error>([weight((graph.nodes, HIDDEN))?, weight((HIDDEN, 2))?]);
        let weights = rng::with_generator(&Generator::new(seed), weights)?;
        Ok(Net { graph: normalised(graph, device)?, weights })
    }

    fn forward(&self) -> Result<Tensor> {
        let hidden = self.graph.mm(&self.weights[0])?.relu()?;
        self.graph.mm(&hidden.mm(&self.weights[1])?)
    }

    /// The weights by name.
    fn state_dict(&self) -> StateDict {
        let named = self.weights.iter().enumerate();
        named.map(|(layer, weight)| (format!("layers.{layer}.weight"), weight.detach())).collect()
    }
}

/// Rejects options that apply only to images.
fn check(options: &Options) -> std::result::Result<(), Failure> {
    let given = [
        ("--data", options.data.is_some()),
        ("--batch", options.batch.is_some()),
        ("--memory-format", options.memory_format.is_some()),
        ("--checkpoint", options.checkpoint.is_some()),
        ("--resume", options.resume.is_some()),
        ("--plot", options.plot.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Failure::Usage(format!("`graph` has no `{name}`; leave it out"))),
        None => Ok(()),
    }
}

/// Trains and prints the results.
///
/// # Errors
/// Wrong usage, no backend, errors of the training, and a file that cannot be written.
pub fn run(
    options: &Options,
    trace: &Option<PathBuf>,
    choice: &Choice,
    screen: &mut Screen,
) -> std::result::Result<(), Failure> {
    check(options)?;
    let at_end = [
        (outputs::TRACE, trace),
        (outputs::SAVE, &options.save),
        (outputs::MEMORY, &options.profile_memory),
        (outputs::JSON, &options.json),
    ];
    Outputs::new(at_end).check()?;
    parallel::set_num_threads(options.threads.map_or(0, usize::from));
    let device = machine::device(&options.device, "training", choice)?;
    let (graph, start) = (karate_club(), Instant::now());
    let (epochs, lr) = (options.epochs.unwrap_or(EPOCHS), options.lr.unwrap_or(LR));
    let seed = options.seed.unwrap_or(0);
    let memory = options.profile_memory.is_some().then(profiler::memory);
    let net = Net::new(&graph, device, seed)?;
    let labelled = [INSTRUCTOR, OFFICER];
    let at = |nodes: [usize; 2]| Tensor::new(nodes.map(|n| n as i64))?.to_device(device);
    let (nodes, targets) = (at(labelled)?, at(labelled.map(|node| graph.classes[node]))?);
    let mut optimizer = Adam::new(net.weights.to_vec(), AdamOptions { lr, ..AdamOptions::default() })?;
    let mut train_loss = Vec::new();
    let profile = options.profile.is_some().then(|| super::profile_for(trace));
    for epoch in 0..epochs {
        let _scope = profiler::scope(&format!("epoch {}", epoch + 1));
        optimizer.zero_grad();
        let scores = net.forward()?.index_select(0, &nodes)?;
        let loss = functional::cross_entropy(&scores, &targets)?;
        loss.backward()?;
        optimizer.step()?;
        let loss = f64::from(loss.detach().item::<f32>()?);
        if !loss.is_finite() {
            return Err(Failure::Diverged { epoch: epoch as usize + 1, loss, lr });
        }
        train_loss.push(loss);
    }
    let scores = {
        let _off = no_grad();
        net.forward()?.to_device(Device::CPU)?.to_vec::<f32>()?
    };
    let trace = profile.map(|profile| profile.trace());
    let memory = memory.map(|memory| memory.snapshot());
    let class = |node: usize| usize::from(scores[2 * node + 1] > scores[2 * node]);
    let wrong = (0..graph.nodes).filter(|&node| class(node) != graph.classes[node]).collect();
    let results = Results {
        dataset: "graph",
        model: "gcn",
        nodes: graph.nodes,
        edges: graph.edges.len(),
        labelled,
        epochs,
        lr,
        seed,
        device: device.to_string(),
        train_loss,
        wrong,
        seconds: start.elapsed().as_secs_f64(),
        profile: trace.as_ref().map(|trace| trace.report.clone()),
    };
    summarize(&results, screen);
    trace.iter().for_each(|trace| profile::report_dropped(trace, screen));
    let text = serde_json::to_string_pretty(&results).map(|text| text + "\n");
    let written = Outputs::new(at_end).write(|what, path| match (what, &trace, &memory, &text) {
        (outputs::TRACE, Some(trace), ..) => profile::write(path, trace),
        (outputs::MEMORY, _, Some(memory), _) => profile::write_memory(path, memory),
        (outputs::SAVE, ..) => safetensors::save(path, &net.state_dict()).map_err(|error| error.to_string()),
        (.., Ok(text)) => files::text(path, text),
        (.., Err(error)) => Err(error.to_string()),
    });
    files::report_written(written, screen)
}

fn summarize(results: &Results, screen: &mut Screen) {
    let Results { nodes, edges, epochs, lr, seed, wrong, .. } = results;
    screen.line(format!("gcn on graph: {epochs} epochs, lr {lr}, seed {seed}"));
    screen.line(format!(
        "{nodes} nodes, {edges} edges, {nodes}-{HIDDEN}-2 layers, one labelled node of each class"
    ));
    screen.line(format!(
        "{} of {nodes} nodes wrong{}",
        wrong.len(),
        match wrong.is_empty() {
            true => String::new(),
            false => format!(": {wrong:?}"),
        }
    ));
    screen.line(format!(
        "last training loss {:.4}, {:.2} s",
        results.train_loss.last().copied().unwrap_or_default(),
        results.seconds
    ));
    if let Some(report) = &results.profile {
        screen.line("");
        profile::print(report, profile::TOP, screen);
    }
}
