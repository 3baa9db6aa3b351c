//! The choice of a memory format for each recorded call: converts a recording to a graph labelling problem, and its solution to
//! a plan.

use super::cut::{Pair, Problem};
use super::order::{FORMATS, NEITHER};
use super::record::{Choice, Input, Node, Origin, Recorded};
use super::{Conversion, Plan, Step};

/// Picoseconds per second: the cut has integer costs, and their rounding is below measurement error.
const UNITS: f64 = 1e12;

/// The maximum cost of one item, so that sums of many do not overflow.
const MOST: f64 = 1e15;

fn units(seconds: f64) -> i64 {
    (seconds.max(0.0) * UNITS).round().min(MOST) as i64
}

/// The seconds to convert an argument from the format of its producer.
fn converting(input: &Input, from: usize, to: usize) -> f64 {
    if from == to { 0.0 } else { input.conversion[from][to] }
}

/// The graph with its costs: a node for each input tensor and each call, and a pair for each argument that may be converted.
pub(super) fn problem(nodes: &[Node]) -> Problem {
    let calls = || nodes.iter().filter_map(call);
    let finite = |seconds: f64| if seconds.is_finite() { units(seconds) } else { 0 };
    let of_ops: i64 = calls().flat_map(|call| call.seconds).map(finite).sum();
    let of_conversions: i64 = calls()
        .flat_map(|call| &call.inputs)
        .flat_map(|input| input.conversion.as_flattened())
        .copied()
        .map(finite)
        .sum();
    // A cost above the sum of all others, for forbidden labels.
    let never = 1 + nodes.len() as i64 + of_ops + of_conversions;
    let cost = |seconds: f64| if seconds.is_finite() { units(seconds) } else { never };
    let mut problem = Problem::default();
    for (to, node) in nodes.iter().enumerate() {
        let Some(call) = call(node) else {
            problem.nodes.push([0; 2]);
            continue;
        };
        let mut single = call.seconds.map(cost);
        // Ties go to the current format.
        for (label, cost) in single.iter_mut().enumerate() {
            *cost += i64::from(label != call.before);
        }
        problem.nodes.push(single);
        for input in &call.inputs {
            let produced = nodes[input.from].produces;
            let fixed = call.in_place && input.argument == 0;
            let pair = |from: usize, to: usize| match produced[from] {
                same if same == to => 0,
                // A tensor that a call modifies is not converted; one in neither format counts as both.
                NEITHER if fixed => 0,
                _ if fixed => never,
                other => cost(converting(input, other, to)),
            };
            let costs = [0, 1].map(|from| [0, 1].map(|to| pair(from, to)));
            problem.pairs.push(Pair { from: input.from, to, costs });
        }
    }
    problem
}

/// The plan of a recording with these labels.
pub(super) fn plan(nodes: &[Node], labels: &[usize]) -> Plan {
    let steps: Vec<Step> = nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| Some(step(nodes, labels, labels[index], call(node)?)))
        .collect();
    let is_read =
        |index: usize| nodes.iter().filter_map(call).any(|call| call.inputs.iter().any(|i| i.from == index));
    let parameters = nodes.iter().enumerate().filter_map(|(index, node)| match &node.origin {
        Origin::Parameter(name) if is_read(index) => Some((name.clone(), FORMATS[labels[index]])),
        _ => None,
    });
    Plan {
        before: steps.iter().map(|step| step.before).sum(),
        after: steps.iter().map(Step::seconds).sum(),
        parameters: parameters.collect(),
        steps,
    }
}

fn call(node: &Node) -> Option<&Recorded> {
    match &node.origin {
        Origin::Call(call) => Some(call),
        _ => None,
    }
}

fn step(nodes: &[Node], labels: &[usize], label: usize, call: &Recorded) -> Step {
    let format = |index: usize| FORMATS.get(index).copied();
    let chooses = call.choice != Choice::None && !call.inputs.is_empty();
    let conversions = call.inputs.iter().filter_map(|input| {
        let source = &nodes[input.from];
        let from = source.produces[labels[input.from]];
        let stays = from == label || (call.in_place && input.argument == 0);
        // A parameter already has the format that was chosen for it.
        (!stays).then(|| Conversion {
            argument: input.argument,
            from: format(from),
            to: FORMATS[label],
            bytes: input.bytes,
            seconds: converting(input, from, label),
        })
    });
    let conversions: Vec<Conversion> = if chooses { conversions.collect() } else { Vec::new() };
    let after = if chooses { call.seconds[label] } else { call.as_given };
    Step {
        path: call.path.clone(),
        op: call.op,
        in_place: call.in_place,
        shape: call.shape.clone(),
        from: if chooses { format(call.before) } else { None },
        format: chooses.then_some(FORMATS[label]),
        by_strides: call.choice == Choice::Fixed,
        before: call.as_given,
        after,
        conversions,
    }
}
