//! Calls that a device does not serve and its policy sends to the CPU: who runs them is what `explain` says, and each call
//! moves its tensors there once and its results back once.

mod rehearsal_support;

use keyway::autograd::{BackwardOptions, grad};
use keyway::nn::Reduction;
use keyway::ops::build::{Built, build};
use keyway::ops::by_name;
use keyway::ops::def::OpDef;
use keyway::{DType, Device, Layout, Tensor, graph, profiler};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::op::{Arg, Args, OpEntry, Plan, Rule};
use keyway_dispatcher::registry::serving::{self, Candidate};
use keyway_dispatcher::registry::{FallbackPolicy, set_fallback};
use keyway_dispatcher::tensor::Format;
use keyway_dispatcher::{Error, ledger, table};
use rehearsal_support::*;
use std::collections::BTreeMap;

/// Every library with kernels or layouts that these tests have.
const PLUGINS: &[&str] =
    &["keyway_test_device", "keyway_backend_sparse", "keyway_backend_channels_last", "keyway_test_csr"];

/// Sends the calls that the remote device does not serve to the CPU until it is dropped.
struct ToCpu;

impl ToCpu {
    fn set() -> ToCpu {
        set_fallback(remote(0).kind, FallbackPolicy::Allow(Device::CPU.kind)).unwrap();
        ToCpu
    }
}

impl Drop for ToCpu {
    fn drop(&mut self) {
        set_fallback(remote(0).kind, FallbackPolicy::Error).unwrap();
    }
}

/// The calls and moved tensors of each op that ran on another device in `work`.
fn moved<T>(work: impl FnOnce() -> T) -> (T, BTreeMap<String, (u64, u64)>) {
    let profile = profiler::profile();
    let made = work();
    let fallbacks = profile.report().fallbacks;
    (made, fallbacks.into_iter().map(|f| (f.op, (f.calls, f.moves))).collect())
}

/// The number of tensor copies between devices made by `work`.
fn copies<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let profile = profiler::profile();
    let made = work();
    let rows = profile.report().rows;
    (made, rows.iter().filter(|row| row.op == "to_device").map(|row| row.calls).sum())
}

fn there(t: &Tensor) -> Tensor {
    t.to_device(remote(0)).unwrap()
}

fn here(t: &Tensor) -> Vec<f64> {
    t.to_device(Device::CPU).unwrap().to_dense().unwrap().to_vec_f64().unwrap()
}

#[test]
fn a_composite_op_moves_its_arguments_once_and_its_result_once() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    let (x, classes) = (ramp(&[3, 4]), Tensor::new([1i64, 0, 3]).unwrap());
    let (far, far_classes) = (there(&x), there(&classes));
    let (loss, ledger) = moved(|| far.cross_entropy(&far_classes).unwrap());
    assert_eq!(ledger, BTreeMap::from([("cross_entropy".to_string(), (1, 3))]));
    assert_eq!(loss.device(), remote(0));
    assert_close(&here(&loss), &here(&x.cross_entropy(&classes).unwrap()), 1e-6);
    // One tensor as two arguments is moved once.
    let (made, ledger) = moved(|| far.mse_loss_with(&far, Reduction::Sum).unwrap());
    assert_eq!((ledger["mse_loss"], here(&made)), ((1, 2), vec![0.0]));
}

#[test]
fn running_statistics_that_were_changed_elsewhere_come_back() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    let x = ramp(&[4, 2, 3]);
    let channels = |values: [f32; 2]| Tensor::new(values).unwrap();
    let all = [channels([0.0, 0.5]), channels([1.0, 2.0]), channels([1.5, 0.5]), channels([0.1, 0.2])];
    let run = |x: &Tensor, [mean, var, weight, bias]: [&Tensor; 4]| {
        x.batch_norm(Some((mean, var)), Some(weight), Some(bias), true, 0.25, 1e-5).unwrap()
    };
    let far = all.each_ref().map(there);
    let far_x = there(&x);
    let (made, ledger) = moved(|| run(&far_x, far.each_ref()));
    // Five arguments; the result and two statistics.
    assert_eq!(ledger, BTreeMap::from([("batch_norm".to_string(), (1, 8))]));
    assert_close(&here(&made), &here(&run(&x, all.each_ref())), 1e-6);
    for (far, near) in far.iter().zip(&all) {
        assert_close(&here(far), &here(near), 1e-6);
    }
    // A view with gaps, and with a gradient.
    let wide = there(&Tensor::new([[0.0f32, 9.0], [0.5, 9.0]]).unwrap());
    let near_wide = Tensor::new([[0.0f32, 9.0], [0.5, 9.0]]).unwrap();
    let column = |t: &Tensor| t.select(1, 0).unwrap();
    let weight = |t: &Tensor| t.detach().requires_grad_(true).unwrap();
    let far_result = run(&far_x, [&column(&wide), &far[1], &weight(&far[2]), &far[3]]);
    let near_result = run(&x, [&column(&near_wide), &all[1], &weight(&all[2]), &all[3]]);
    assert_close(&here(&far_result), &here(&near_result), 1e-6);
    assert_close(&here(&wide), &here(&near_wide), 1e-6);
    assert_close(&here(&far[1]), &here(&all[1]), 1e-6);
}

#[test]
fn a_composite_op_and_its_gradient_are_each_computed_elsewhere_whole() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    let (x, classes) = (ramp(&[3, 4]), Tensor::new([1i64, 0, 3]).unwrap());
    let leaf = |t: &Tensor| t.detach().requires_grad_(true).unwrap();
    let (far, far_classes) = (leaf(&there(&x)), there(&classes));
    let (loss, count) = copies(|| far.cross_entropy(&far_classes).unwrap());
    assert_eq!((count, loss.device()), (3, remote(0)));
    let ((), count) = copies(|| loss.backward().unwrap());
    assert_eq!(count, 2, "the gradient of the loss, and that of the scores");
    let near = leaf(&x);
    near.cross_entropy(&classes).unwrap().backward().unwrap();
    assert_eq!(far.grad().unwrap().device(), remote(0));
    assert_close(&here(&far.grad().unwrap()), &here(&near.grad().unwrap()), 1e-6);
}

#[test]
fn a_formula_that_cannot_stay_is_computed_elsewhere_whole() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    // No element is 0, where `atan2` has no derivative.
    let x = ramp(&[3, 4]).add(0.1).unwrap();
    let leaf = |t: &Tensor| t.detach().requires_grad_(true).unwrap();
    type Formula = fn(&Tensor) -> keyway::Result<Tensor>;
    let formulas: [(&str, Formula); 5] = [
        ("softmax", |x| x.softmax(1)),
        ("tanh", Tensor::tanh),
        ("atan2", |x| x.atan2(&x.detach())),
        ("max", |x| Ok(x.max(1)?.0)),
        ("var", |x| x.var(1)),
    ];
    let mut total = 0;
    for (name, run) in formulas {
        let (far, near) = (leaf(&there(&x)), leaf(&x));
        let (made, expected) = (run(&far).unwrap(), run(&near).unwrap());
        let start = Tensor::full_with(made.shape(), 0.75, DType::F32).unwrap();
        let far_start = there(&start);
        let begin = |start: &Tensor| BackwardOptions { create_graph: true, ..BackwardOptions::from(start) };
        let (grads, count) = copies(|| grad(&[&made], &[&far], begin(&far_start)).unwrap());
        let near_grads = grad(&[&expected], &[&near], begin(&start)).unwrap();
        let (far_grad, near_grad) = (grads[0].clone().unwrap(), near_grads[0].clone().unwrap());
        assert_eq!(far_grad.device(), remote(0), "{name}");
        assert_close(&here(&far_grad), &here(&near_grad), 1e-5);
        // The gradient, at most two saved tensors, and the gradient that comes back.
        println!("{name}: {count} copies");
        assert!(count <= 4, "{name}: {count} copies between the devices");
        total += count;
        if near_grad.requires_grad() {
            let second = |made: &Tensor, x: &Tensor| {
                let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
                grad(&[made.sum_all().unwrap()], &[x], options).unwrap()[0].as_ref().map(here)
            };
            let (own, wanted) = (second(&far_grad, &far), second(&near_grad, &near));
            assert_close(&own.unwrap_or_default(), &wanted.unwrap_or_default(), 1e-4);
        }
    }
    assert!(total > 0, "no formula had to leave");
}

#[test]
fn a_formula_that_can_stay_does() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    // No library serves `neg` on the device, and its gradient needs `mul` or `neg`; that of a sum is a view.
    let far = there(&ramp(&[3, 4])).requires_grad_(true).unwrap();
    let loss = far.mul(&far).unwrap().exp().unwrap().sum_all().unwrap();
    let ((), count) = copies(|| loss.backward().unwrap());
    assert_eq!(count, 0);
    assert_eq!(far.grad().unwrap().device(), remote(0));
}

#[test]
fn tensors_of_coordinates_fall_back_whole() {
    let _one = load(PLUGINS);
    let _policy = ToCpu::set();
    let x = Tensor::new([[0.5f32, 0.0, 2.0], [0.0, -1.0, 0.25]]).unwrap();
    let (near, far) = (x.to_sparse().unwrap(), there(&x).to_sparse().unwrap());
    assert_eq!((far.device(), far.layout().name()), (remote(0), "sparse_coo"));
    let rows = Tensor::new([1i64, 0]).unwrap();
    type Run<'a> = &'a dyn Fn(&Tensor) -> keyway::Result<Tensor>;
    let runs: [(&str, Run<'_>); 6] = [
        ("softmax", &|t| t.softmax(1)),
        ("log_softmax", &|t| t.log_softmax(1)),
        ("index_select", &|t| t.index_select(0, &rows.to_device(t.device())?)),
        ("add", &|t| t.add(t)),
        ("sum", &|t| t.sum(1)),
        ("transpose", &|t| t.t()),
    ];
    for (name, run) in runs {
        let (made, ledger) = moved(|| run(&far).unwrap_or_else(|error| panic!("{name}: {error}")));
        assert_eq!(made.device(), remote(0), "{name}");
        assert_eq!(here(&made), here(&run(&near).unwrap()), "{name}");
        assert_eq!(ledger.keys().collect::<Vec<_>>(), [name]);
        assert_eq!(ledger[name].0, 1, "{name}");
    }
    // In place the tensor keeps its pattern, and the values are copied back.
    far.mul_(3.0).unwrap();
    near.mul_(3.0).unwrap();
    assert_eq!((far.device(), here(&far)), (remote(0), here(&near)));
}

#[test]
fn an_output_on_another_device_is_refused() {
    let _one = load(PLUGINS);
    let a = ramp(&[2, 2]);
    let (far, mut out) = (there(&a), Tensor::empty([2, 2]).unwrap());
    let refused = |result: keyway::Result<()>, op: &str| {
        let text = message(result);
        let part =
            format!("{op}: expected all tensors on test.keyway/remote:0, but `out` is on cpu; move it");
        assert!(text.contains(&part), "{text}");
    };
    refused(far.add_out(&far, &mut out).map(drop), "add");
    refused(far.mm_out(&far, &mut out).map(drop), "mm");
    {
        let _policy = ToCpu::set();
        refused(far.sub_out(&far, &mut out).map(drop), "sub");
        let softmax = |out: &Tensor| by_name::call_out("softmax", &[(&far).into(), Arg::Int(1)], &[out]);
        refused(softmax(&out), "softmax");
        let mut far_out = there(&out);
        far.sub_out(&far, &mut far_out).unwrap();
        assert_eq!(here(&far_out), [0.0; 4]);
    }
    let text = message(a.add_out(&a, &mut far.detach()).map(drop));
    assert!(text.contains("add: expected all tensors on cpu:0") || text.contains("on cpu,"), "{text}");
}

#[test]
fn ops_of_other_devices_in_a_capture_are_refused() {
    let _one = load(PLUGINS);
    let (a, host) = (there(&ramp(&[2, 2])), ramp(&[2, 2]));
    let other = host.to_device(remote(1)).unwrap();
    let refused = |what: &str, part: &str, work: &dyn Fn() -> keyway::Result<()>| {
        let text = message(graph::capture(remote(0), work));
        assert!(text.contains(part), "{what}: {text}");
    };
    let elsewhere = "cannot be captured: a tensor of it is on a device whose work is not being captured";
    refused("an op on the CPU", elsewhere, &|| host.mul(2.0).map(drop));
    refused("in place on the CPU", elsewhere, &|| host.add_(1.0).map(drop));
    refused("an op on another device", elsewhere, &|| other.mul(2.0).map(drop));
    refused("an output on the CPU", elsewhere, &|| a.add_out(&a, &mut host.detach()).map(drop));
    refused("an output on another device", elsewhere, &|| a.add_out(&a, &mut other.detach()).map(drop));
    {
        let _policy = ToCpu::set();
        let part = "falls back to `cpu`, which a replay would not do again";
        refused("a fallback", part, &|| a.atan2(&a).map(drop));
        refused("a fallback of a composite op", part, &|| a.mse_loss(&a.mul(2.0)?).map(drop));
    }
    assert_eq!(here(&host), here(&ramp(&[2, 2])), "nothing was done");
    // A host scalar is a number, and is recorded as it is.
    let work = || a.mul(&Tensor::new(2.0f32)?.mul(2.0)?);
    let (made, captured) = graph::capture(remote(0), work).unwrap();
    captured.replay().unwrap();
    assert_eq!(here(&made), here(&ramp(&[2, 2]).mul(4.0).unwrap()));
}

/// The dtype that a call computes in, if the op's rule takes it.
fn computed_in(args: &Args<'_>) -> Option<DType> {
    match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => {
            let typing = typing(args).ok()?;
            Plan::elementwise(args, inputs, typing).ok().map(|_| typing.compute)
        }
        Rule::Structured(rule) | Rule::Allocates(rule) => rule(args).ok().map(|plan| plan.compute),
        Rule::View(_) | Rule::Views(_) | Rule::Reinterpret(_) => args.tensor(0).ok().map(|t| t.dtype()),
        Rule::Host(_) | Rule::Foreign(_) => None,
    }
}

/// The tensors of a sample with the float matrices, images or vectors among them in a layout; `None` where none can be.
fn laid_out(built: &Built, layout: Layout) -> Option<Vec<Tensor>> {
    let mut any = false;
    let lay = |t: &Tensor, tested: bool, first: bool| -> Option<Tensor> {
        match layout {
            Layout::STRIDED => Some(t.clone()),
            Layout::CHANNELS_LAST if t.rank() == 4 => t.to(keyway::MemoryFormat::ChannelsLast).ok(),
            Layout::CHANNELS_LAST => Some(t.clone()),
            _ if tested && first && t.rank() > 0 => t.to_layout(layout).ok(),
            _ => Some(t.clone()),
        }
    };
    let mut made = Vec::new();
    for (i, (t, tested)) in built.tensors.iter().zip(&built.tested).enumerate() {
        let t = lay(t, *tested, i == 0)?;
        any |= t.as_ref().dispatch_layout() == layout;
        made.push(t);
    }
    any.then_some(made)
}

/// The decision for a key, by `decided` and by `explain`, which must agree.
fn decided(op: &'static OpEntry, device: Device, layout: Layout, dtype: DType) -> Option<Candidate> {
    let decided = serving::server(op, device, layout, dtype);
    let why = explain(op, device, layout, dtype);
    let chosen: Vec<_> = why.candidates.iter().filter(|c| c.chosen).map(|c| c.what.as_str()).collect();
    let agrees = match (decided, &chosen[..]) {
        (None, []) => true,
        (Some(Candidate::View | Candidate::Host), ["the host"])
        | (Some(Candidate::Decomposition), ["other ops"]) => true,
        (Some(Candidate::Kernel(kernel)), [what]) => {
            what.starts_with(&format!("kernel of `{}`", kernel.plugin.name))
        }
        (Some(Candidate::Fallback { .. }), ["fallback to `cpu`"]) => true,
        _ => false,
    };
    assert!(agrees, "{op:?} ({device}, {layout}, {dtype}): {decided:?}, but {why}");
    decided
}

/// Whether a call may fail because of the arguments of an op within it, although each part has a kernel: a kernel that calls
/// others, or a part whose kernel takes some arguments alone (`clamp` of a sparse tensor bounds that keep 0).
fn refuses_within(op: &str, first: Candidate) -> bool {
    matches!(
        (op, first),
        ("sparse_mask", _)
            | ("normalize" | "cosine_similarity", Candidate::Decomposition | Candidate::Fallback { .. })
    )
}

/// Compares who serves a call with who is said to serve it; a line about what differs.
fn differs(def: &'static OpDef, built: &Built, tensors: &[Tensor], layout: Layout) -> Option<String> {
    let op = def.entry().unwrap();
    let device = tensors
        .iter()
        .find(|t| t.rank() > 0 || t.device() != Device::CPU)
        .map_or(Device::CPU, Tensor::device);
    let mut dtype = None;
    built.with_values(tensors, |values| dtype = computed_in(&Args { op, values }));
    let dtype = dtype?;
    let decided = decided(op, device, layout, dtype);
    let rows = table::current().op(op).unwrap();
    let listed: Vec<&str> = serving::candidates(table::current(), rows, device, layout, dtype)
        .iter()
        .map(Candidate::name)
        .collect();
    ledger::forget_served();
    let result = built.call(def, tensors);
    let served = ledger::last_served().name();
    let what = format!("{} ({device}, {layout}, {dtype})", def.name());
    let missing = |error: &keyway::Error| match error {
        keyway::Error::Dispatch(Error::MissingKernel(missing)) => missing.refused.is_empty(),
        _ => false,
    };
    match (decided, &result) {
        (Some(first), Ok(_)) if first.name() == served => None,
        // The first kernel refused these arguments.
        (Some(Candidate::Kernel(_)), Ok(_)) if listed.contains(&served) => None,
        (Some(first), Ok(_)) => Some(format!("{what}: {} is said to serve it, {served} does", first.name())),
        (Some(first), Err(error)) if missing(error) && !refuses_within(def.name(), first) => {
            Some(format!("{what}: {} is said to serve it, but: {error}", first.name()))
        }
        (Some(_), Err(_)) => None,
        // A call that does not need the part without a kernel.
        (None, Ok(_)) if served == "(decomposition)" => None,
        (None, Ok(_)) => Some(format!("{what}: nobody is said to serve it, {served} does")),
        (None, Err(_)) => None,
    }
}

#[test]
fn calls_are_served_by_whom_the_decision_names() {
    let _one = load(PLUGINS);
    let layouts: Vec<Layout> = ["strided", "channels_last", "sparse_coo", "sparse_csr", "test.keyway/csr"]
        .map(|name| Layout::from_name(name).unwrap())
        .into();
    let only = std::env::var("KEYWAY_OPS").ok();
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = 0;
    let mut sweep = |device: Device| {
        for def in keyway::ops::all() {
            if only.as_ref().is_some_and(|names| !names.split(',').any(|name| name == def.name())) {
                continue;
            }
            for (seed, sample) in (def.samples)().iter().take(4).enumerate() {
                for dtype in DType::REAL.into_iter().filter(|dtype| def.dtypes.has(*dtype)) {
                    let Ok(built) = build(&sample.args, dtype, seed as u64) else { continue };
                    for &layout in &layouts {
                        let Some(tensors) = laid_out(&built, layout) else { continue };
                        let place = |t: &Tensor| t.to_device(device);
                        let Ok(tensors) = tensors.iter().map(place).collect::<keyway::Result<Vec<_>>>()
                        else {
                            continue;
                        };
                        // The layout of such an image depends on the other arguments.
                        let unclear = |t: &Tensor| t.as_ref().format() == Format::EitherLast;
                        if tensors.iter().any(unclear) {
                            continue;
                        }
                        count += 1;
                        if let Some(line) = differs(def, &built, &tensors, layout) {
                            *found.entry(line).or_default() += 1;
                        }
                    }
                }
            }
        }
    };
    sweep(Device::CPU);
    sweep(remote(0));
    {
        let _policy = ToCpu::set();
        sweep(remote(0));
    }
    println!("{count} calls");
    let lines: Vec<String> = found.into_iter().map(|(line, n)| format!("{n}x {line}")).collect();
    assert!(lines.is_empty(), "{} kinds:\n{}", lines.len(), lines.join("\n"));
    assert!(only.is_some() || count > 10_000, "{count} calls");
}
