//! Decompositions: that the rule of a composite op states what its decomposition makes, that the recorded parts are
//! the ops that a run calls, and that the decomposition of an op that has a kernel agrees with the kernel.
//! `KEYWAY_OPS=linear,matmul` limits the run to those ops.

use keyway::ops::build::{Built, build};
use keyway::ops::def::{Derivative, OpDef};
use keyway::ops::sample::{Fill, Sample, SampleArg, fixed, index, plain, sample};
use keyway::{DType, Tensor};
use keyway_dispatcher::call::redispatch;
use keyway_dispatcher::dims::{channels_last_strides, contiguous_strides, is_dense};
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::op::{Arg, Args, Part, PartDtype, Plan, Rule, Strides};
use keyway_dispatcher::registry::{KeyHandler, register_key_handler};
use keyway_dispatcher::tensor::{Format, TensorRef};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Once;

const DTYPES: [DType; 8] =
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::BOOL];

/// Composite ops for which the CPU backend has a kernel.
const WITH_KERNEL: [&str; 2] = ["embedding_bag", "grid_sample"];

/// Ops that no backend here has a kernel of: everything that they make comes from the decomposition.
fn is_composite(def: &OpDef) -> bool {
    def.decomposition.is_some()
        && (matches!(def.derivative, Derivative::Composite) || def.name() == "argsort")
        && !WITH_KERNEL.contains(&def.name())
}

fn ops() -> impl Iterator<Item = &'static OpDef> {
    let only = std::env::var("KEYWAY_OPS").ok();
    keyway::ops::all()
        .filter(|def| def.decomposition.is_some())
        .filter(move |def| only.as_ref().is_none_or(|names| names.split(',').any(|name| name == def.name())))
}

/// The compute dtype of a call, and its plan if the rule returns one; `None` if the op needs no kernel.
fn planned(args: &Args<'_>) -> Option<(DType, Option<Plan>)> {
    match args.op.spec.rule {
        Rule::Elementwise(inputs, typing) => {
            let typing = typing(args).ok()?;
            Some((typing.compute, Plan::elementwise(args, inputs, typing).ok()))
        }
        Rule::Structured(rule) => rule(args).ok().map(|plan| (plan.compute, Some(plan))),
        Rule::Allocates(rule) => rule(args).ok().map(|plan| (plan.compute, None)),
        _ => None,
    }
}

/// The memory layout of a call's tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Memory {
    Contiguous,
    Reversed,
    ChannelsLast,
    /// The first tensor with dimensions in reverse order, the others row-major.
    Mixed,
    Gaps,
}

const MEMORIES: [Memory; 5] =
    [Memory::Contiguous, Memory::Reversed, Memory::ChannelsLast, Memory::Mixed, Memory::Gaps];

fn arranged(t: &Tensor, memory: Memory, i: usize) -> Tensor {
    let sizes = t.shape();
    let reversed = || -> Vec<usize> {
        let mut strides = vec![1; sizes.len()];
        for d in 1..sizes.len() {
            strides[d] = strides[d - 1] * sizes[d - 1].max(1);
        }
        strides
    };
    let strides: Vec<usize> = match memory {
        Memory::Reversed => reversed(),
        Memory::Mixed if i == 0 => reversed(),
        Memory::ChannelsLast if (3..=5).contains(&sizes.len()) => channels_last_strides(sizes).to_vec(),
        Memory::Gaps => contiguous_strides(sizes).iter().map(|s| 2 * s).collect(),
        _ => return t.clone(),
    };
    let made = Tensor::empty_strided_with(sizes, &strides, (t.dtype(), t.device())).unwrap();
    made.copy_(t).unwrap();
    made
}

/// The strides of a new output, as the plan states them; written here a second time, on purpose.
fn strides_of(args: &Args<'_>, plan: &Plan, output: usize) -> Vec<usize> {
    let spec = &plan.outputs[output];
    let like = |t: &TensorRef| match t.format() {
        Format::ChannelsLast => channels_last_strides(t.sizes()).to_vec(),
        _ if is_dense(t.sizes(), t.strides()) => t.strides().to_vec(),
        _ => contiguous_strides(t.sizes()).to_vec(),
    };
    let row_major = contiguous_strides(&spec.sizes).to_vec();
    match &spec.strides {
        Strides::Contiguous => row_major,
        Strides::Images(mask) => {
            let images = || {
                args.values.iter().enumerate().filter_map(|(i, arg)| match arg {
                    Arg::Tensor(t) if mask & (1 << i) != 0 && (3..=5).contains(&t.ndim()) => Some(*t),
                    _ => None,
                })
            };
            let is = |t: &TensorRef, wanted: Format| t.format() == wanted;
            let ordered = |t: &TensorRef| is(t, Format::Other) && t.is_in_channels_last_order();
            let last = images().any(|t| is(t, Format::ChannelsLast) || ordered(t));
            let meant = images().any(|t| is(t, Format::EitherLast));
            let decided = images().any(|t| is(t, Format::Contiguous) || is(t, Format::Other) && !ordered(t));
            match last || meant && !decided {
                true => channels_last_strides(&spec.sizes).to_vec(),
                false => row_major,
            }
        }
        Strides::Exact(strides) => strides.to_vec(),
        Strides::Like(i) => match args.values[*i] {
            Arg::Tensor(t) if t.sizes() == spec.sizes.as_slice() => like(t),
            _ => row_major,
        },
        Strides::Preserve => {
            let full: Vec<&TensorRef> = args
                .values
                .iter()
                .enumerate()
                .filter_map(|(i, arg)| match arg {
                    Arg::Tensor(t) if plan.broadcast & (1 << i) != 0 => Some(*t),
                    _ => None,
                })
                .filter(|t| t.sizes() == spec.sizes.as_slice())
                .collect();
            let decided: Vec<&TensorRef> = full
                .iter()
                .copied()
                .filter(|t| !matches!(t.format(), Format::Either | Format::EitherLast))
                .collect();
            if full.is_empty() {
                // The tensors with the same number of dimensions decide whether it is channels_last.
                let smaller = || {
                    args.values.iter().enumerate().filter_map(|(i, arg)| match arg {
                        Arg::Tensor(t) if plan.broadcast & (1 << i) != 0 && t.ndim() == spec.sizes.len() => {
                            Some(t.format())
                        }
                        _ => None,
                    })
                };
                let any = |wanted: &[Format]| smaller().any(|format| wanted.contains(&format));
                let meant = any(&[Format::EitherLast]) && !any(&[Format::Contiguous, Format::Other]);
                return match any(&[Format::ChannelsLast]) || meant {
                    true => channels_last_strides(&spec.sizes).to_vec(),
                    false => row_major,
                };
            }
            match (decided.iter().find(|t| t.format() == Format::ChannelsLast), decided.first()) {
                (Some(t), _) => like(t),
                (None, Some(first)) if decided.iter().all(|t| t.strides() == first.strides()) => like(first),
                (None, Some(_)) => row_major,
                (None, None) => full.first().map_or(row_major, |t| like(t)),
            }
        }
    }
}

/// Whether elements lie alike; strides of dimensions of one element do not count.
fn same_places(sizes: &[usize], a: &[usize], b: &[usize]) -> bool {
    sizes.contains(&0) || sizes.iter().zip(a.iter().zip(b)).all(|(&size, (x, y))| size == 1 || x == y)
}

/// The arguments and results of a composite call, for every sample in every dtype and arrangement.
fn run_arranged(
    def: &'static OpDef,
    mut check: impl FnMut(String, &Args<'_>, &[Tensor], &[Tensor]),
) -> usize {
    let mut count = 0;
    for (seed, sample) in (def.samples)().iter().enumerate() {
        for dtype in DTYPES.into_iter().filter(|&dtype| def.dtypes.has(dtype)) {
            let built = build(&sample.args, dtype, seed as u64).unwrap();
            for memory in MEMORIES {
                let tensors: Vec<Tensor> =
                    built.tensors.iter().enumerate().map(|(i, t)| arranged(t, memory, i)).collect();
                // Integers divided by a zero that the sample's fraction became, say.
                let Ok(made) = built.call(def, &tensors) else {
                    assert!(!dtype.is_float(), "{} {dtype} sample {seed} fails", def.name());
                    continue;
                };
                let what = format!("{} {dtype} {memory:?}: sample {seed} {:?}", def.name(), sample.args);
                let entry = def.entry().unwrap();
                built.with_values(&tensors, |values| {
                    check(what, &Args { op: entry, values }, &tensors, &made);
                });
                count += 1;
            }
        }
    }
    count
}

#[test]
fn a_plan_states_what_the_decomposition_makes() {
    let (mut failures, mut count) = (Vec::new(), 0);
    for def in ops().filter(|def| is_composite(def)) {
        count += run_arranged(def, |what, args, tensors, made| {
            let Some((_, Some(plan))) = planned(args) else {
                failures.push(format!("{what}: no plan"));
                return;
            };
            if plan.outputs.len() != made.len() {
                failures.push(format!("{what}: {} outputs, not {}", made.len(), plan.outputs.len()));
            }
            for (i, (spec, t)) in plan.outputs.iter().zip(made).enumerate() {
                if spec.sizes.as_slice() != t.shape() || spec.dtype != t.dtype() {
                    let (sizes, dtype) = (t.shape(), t.dtype());
                    failures.push(format!(
                        "{what}: made {dtype} {sizes:?}, plan {} {:?}",
                        spec.dtype, spec.sizes
                    ));
                }
                let expected = strides_of(args, &plan, i);
                // A view has the strides of its base; the plan is for a new tensor.
                let view = tensors.iter().any(|given| given.shares_storage(t));
                if !view && !same_places(t.shape(), t.strides(), &expected) {
                    let sizes = t.shape();
                    failures
                        .push(format!("{what}: made {sizes:?} strides {:?}, plan {expected:?}", t.strides()));
                }
            }
        });
    }
    assert!(count > 0, "nothing was run");
    let shown: Vec<_> = failures.iter().take(60).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn a_call_that_needs_a_gradient_is_refused_as_any_other() {
    let mut failures = Vec::new();
    for def in ops().filter(|def| is_composite(def) && def.dtypes.has(DType::F32)) {
        for (seed, sample) in (def.errors)().iter().enumerate() {
            let built = build(&sample.args, DType::F32, seed as u64).unwrap();
            let tensors: Vec<Tensor> = built
                .tensors
                .iter()
                .zip(&built.tested)
                .map(|(t, tested)| t.clone().requires_grad_(*tested).unwrap())
                .collect();
            match built.call(def, &tensors) {
                Err(error) if error.to_string().contains(sample.message) => {}
                Err(error) => failures.push(format!("{}: `{error}` lacks `{}`", def.name(), sample.message)),
                Ok(_) => failures.push(format!("{}: error sample {seed} passes", def.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} samples fail:\n{}", failures.len(), failures.join("\n"));
}

/// The key of the recorder: the last of the interposers', which no plugin here takes.
const RECORDER: DispatchKey = DispatchKey::INTERPOSER_LAST;

type Calls = BTreeSet<(&'static str, DType)>;

thread_local! {
    static CALLS: RefCell<Calls> = RefCell::default();
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static ON: Cell<bool> = const { Cell::new(false) };
}

fn install_recorder() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register_key_handler(KeyHandler {
            key: RECORDER,
            name: "recorder".to_string(),
            applies: |_| true,
            handler: Box::new(|call, below| {
                // Ops of the host, views among them, have no kernel; what they call belongs to who called them.
                let Some((compute, _)) = planned(&call.args).filter(|_| ON.get()) else {
                    return redispatch(call, below);
                };
                let depth = DEPTH.replace(DEPTH.get() + 1);
                if depth == 0 {
                    CALLS.with_borrow_mut(|calls| calls.insert((call.args.name(), compute)));
                }
                let result = redispatch(call, below);
                DEPTH.set(depth);
                result
            }),
            interposer: None,
            plugin: None,
        })
        .unwrap();
    });
}

/// The calls made by a decomposition.
fn recorded(def: &'static OpDef, args: &Args<'_>) -> (Calls, keyway_dispatcher::Result<Vec<Tensor>>) {
    install_recorder();
    let _on = KeyGuard::include(KeySet::of(RECORDER));
    CALLS.take();
    ON.set(true);
    let run = def.decomposition.unwrap();
    let made = run(args).map(|made| made.into_iter().map(Tensor::from_ref).collect());
    ON.set(false);
    (CALLS.take(), made)
}

/// Calls that reach parts which no sample does.
fn more_samples(def: &OpDef, dtype: DType) -> Vec<Sample> {
    match def.name() {
        "batch_norm" | "instance_norm" => {
            // Statistics are stored in f32 at least, unless the whole module was cast.
            let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let call = |kept| {
                let running = || fixed(&[3], kept, Fill::Values(vec![0.5, 1.5, 2.0]));
                let [none, float] = [|| SampleArg::None, || SampleArg::Float(0.1)];
                sample([
                    plain(&[2, 3, 4]),
                    running(),
                    running(),
                    none(),
                    none(),
                    SampleArg::Bool(true),
                    float(),
                    float(),
                ])
            };
            vec![call(wide), call(dtype)]
        }
        "scaled_dot_product_attention" => {
            let [query, key, value] = [(); 3].map(|()| plain(&[2, 3, 4]));
            let no = || SampleArg::Bool(false);
            vec![sample([
                query,
                key,
                value,
                SampleArg::None,
                SampleArg::Float(0.5),
                no(),
                SampleArg::None,
                no(),
            ])]
        }
        "embedding_bag" => {
            let at = fixed(&[2, 3], DType::I32, Fill::Index(5));
            let none = || SampleArg::None;
            vec![sample([
                plain(&[5, 3]),
                at,
                none(),
                SampleArg::Str("sum"),
                none(),
                SampleArg::Bool(false),
                none(),
            ])]
        }
        "einsum" => vec![],
        "kl_div" | "linear" => vec![],
        _ => more_of_primitives(def),
    }
}

fn more_of_primitives(def: &OpDef) -> Vec<Sample> {
    match def.name() {
        "embedding" => vec![sample([plain(&[4, 3]), index(&[2, 2], 4), SampleArg::None])],
        _ => vec![],
    }
}

/// The file that the parts of the core ops are read from.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../frontend/src/ops/parts.txt");

/// The dtypes that an op is called in by a decomposition, each with the compute dtype of the decomposed op.
type Pairs = BTreeSet<(DType, DType)>;

/// The parts that describe the calls of one op: of the sets that include every call, the one with the fewest calls that did not
/// happen, then the smallest. An op that is called in one dtype alone, such as bool, has that dtype.
fn smallest_parts(op: &'static str, pairs: &Pairs, computes: &BTreeSet<DType>) -> Vec<Part> {
    let fixed: BTreeSet<DType> = pairs.iter().map(|(_, called)| *called).collect();
    let fixed = fixed.into_iter().map(|dtype| Part::fixed(op, dtype));
    let mut candidates: Vec<Part> = [Part::new(op), Part::widened(op)].into_iter().chain(fixed).collect();
    if pairs.len() == 1 {
        candidates.reverse();
    }
    let sets = (1..1usize << candidates.len()).filter_map(|mask| {
        let parts: Vec<Part> =
            (0..candidates.len()).filter(|i| mask >> i & 1 == 1).map(|i| candidates[i]).collect();
        let described: Pairs = computes
            .iter()
            .flat_map(|compute| parts.iter().map(|part| (*compute, part.dtype_for(*compute))))
            .collect();
        described.is_superset(pairs).then(|| (described.difference(pairs).count(), parts.len(), mask, parts))
    });
    sets.min_by_key(|(extra, count, mask, _)| (*extra, *count, *mask)).map(|(.., parts)| parts).unwrap()
}

/// The line of an op in the recorded file.
fn line(def: &OpDef, called: &BTreeMap<DType, Calls>) -> String {
    let computes: BTreeSet<DType> = called.keys().copied().collect();
    let mut pairs: BTreeMap<&'static str, Pairs> = BTreeMap::new();
    for (compute, calls) in called {
        for (op, dtype) in calls {
            pairs.entry(op).or_default().insert((*compute, *dtype));
        }
    }
    let parts = pairs.iter().flat_map(|(op, pairs)| smallest_parts(op, pairs, &computes));
    let names = parts.map(|part| match part.dtype {
        PartDtype::Compute => format!(" {}", part.op),
        PartDtype::Widened => format!(" {}:widened", part.op),
        PartDtype::Fixed(dtype) => format!(" {}:{}", part.op, dtype.name()),
    });
    format!("{}{}", def.name(), names.collect::<String>())
}

/// Run with `KEYWAY_RECORD_PARTS=1`, as `cargo xtask parts` does, it writes the file.
#[test]
fn the_recorded_parts_are_the_ops_that_are_called() {
    let (mut failures, mut lines) = (Vec::new(), BTreeMap::new());
    for def in ops() {
        // The calls for each compute dtype.
        let mut called: BTreeMap<DType, Calls> = BTreeMap::new();
        for dtype in DTYPES.into_iter().filter(|&dtype| def.dtypes.has(dtype)) {
            let samples = (def.samples)().into_iter().chain(more_samples(def, dtype));
            for (seed, sample) in samples.enumerate() {
                let Ok(built) = build(&sample.args, dtype, seed as u64) else { continue };
                for memory in MEMORIES {
                    let tensors: Vec<Tensor> =
                        built.tensors.iter().enumerate().map(|(i, t)| arranged(t, memory, i)).collect();
                    built.with_values(&tensors, |values| {
                        let args = Args { op: def.entry().unwrap(), values };
                        let Some((compute, _)) = planned(&args) else { return };
                        let (calls, made) = recorded(def, &args);
                        if made.is_ok() {
                            called.entry(compute).or_default().extend(calls);
                        } else if dtype.is_float() {
                            failures.push(format!("{} {dtype} sample {seed}: {made:?}", def.name()));
                        }
                    });
                }
            }
        }
        lines.insert(def.name(), line(def, &called));
    }
    assert!(failures.is_empty(), "{} calls fail:\n{}", failures.len(), failures.join("\n"));
    if std::env::var_os("KEYWAY_RECORD_PARTS").is_some() {
        let text: String = lines.values().map(|line| format!("{line}\n")).collect();
        std::fs::write(RECORDED, text).unwrap();
        return;
    }
    let text = std::fs::read_to_string(RECORDED).unwrap();
    let recorded: BTreeMap<&str, &str> =
        text.lines().map(|line| (line.split(' ').next().unwrap_or(line), line)).collect();
    for (op, line) in &lines {
        let found = recorded.get(op).copied().unwrap_or("no line");
        if found != line {
            failures.push(format!("recorded: {found}\n  called: {line}"));
        }
    }
    if std::env::var_os("KEYWAY_OPS").is_none() {
        let unknown = recorded.keys().filter(|op| !lines.contains_key(*op));
        failures.extend(unknown.map(|op| format!("`{op}` has a line, but no decomposition")));
    }
    assert!(failures.is_empty(), "record the parts with `cargo xtask parts`:\n{}", failures.join("\n"));
}

#[test]
fn parts_are_ops_with_kernels_and_lead_to_no_circle() {
    let parts: BTreeMap<&str, Vec<&str>> = keyway::ops::all()
        .map(|def| (def.name(), def.parts().iter().map(|part| part.op).collect()))
        .collect();
    for def in ops() {
        for part in parts[def.name()].iter() {
            let found = keyway::ops::all().find(|d| d.name() == *part);
            let rule = found.map(|d| d.rule).unwrap_or_else(|| panic!("{}: no op `{part}`", def.name()));
            assert!(!matches!(rule, Rule::Host(_)), "{}: `{part}` needs no kernel", def.name());
        }
        let (mut seen, mut next) = (BTreeSet::new(), parts[def.name()].clone());
        while let Some(part) = next.pop() {
            assert_ne!(part, def.name(), "`{part}` is decomposed into itself");
            if seen.insert(part) {
                next.extend(&parts[part]);
            }
        }
    }
}

/// The dtype's tolerance, relative and absolute.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F64 => (1e-7, 1e-7),
        DType::F32 => (1.3e-6, 1e-5),
        _ => (0.0, 0.0),
    }
}

fn agrees(a: &Tensor, b: &Tensor, factor: f64) -> bool {
    let (relative, absolute) = tolerance(b.dtype());
    let close = |(x, y): (&f64, &f64)| {
        (x.is_nan() && y.is_nan()) || x == y || (x - y).abs() <= factor * (absolute + relative * y.abs())
    };
    let same = a.shape() == b.shape() && a.dtype() == b.dtype();
    same && a.to_vec_f64().unwrap().iter().zip(&b.to_vec_f64().unwrap()).all(close)
}

#[test]
fn a_decomposition_agrees_with_the_kernel() {
    let (mut failures, mut count) = (Vec::new(), 0);
    let dtypes = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::BOOL];
    for def in ops().filter(|def| !is_composite(def)) {
        for (seed, sample) in (def.samples)().iter().chain(&more_of_primitives(def)).enumerate() {
            for dtype in dtypes.into_iter().filter(|&dtype| def.dtypes.has(dtype)) {
                let built: Built = build(&sample.args, dtype, seed as u64).unwrap();
                let what = format!("{} {dtype}: sample {seed} {:?}", def.name(), sample.args);
                let Ok(kernel) = built.call(def, &built.tensors) else { continue };
                let made = built.with_values(&built.tensors, |values| {
                    let run = def.decomposition.unwrap();
                    run(&Args { op: def.entry().unwrap(), values })
                });
                let factor = sample.tolerance_factor.map_or(1.0, |(factor, _)| factor);
                match made {
                    Err(error) => failures.push(format!("{what}: {error}")),
                    Ok(made) => {
                        let made: Vec<Tensor> = made.into_iter().map(Tensor::from_ref).collect();
                        let all = made.len() == kernel.len()
                            && made.iter().zip(&kernel).all(|(a, b)| agrees(a, b, factor));
                        if !all {
                            failures.push(format!("{what}: {made:?}, the kernel {kernel:?}"));
                        }
                    }
                }
                count += 1;
            }
        }
    }
    println!("{count} calls");
    let shown: Vec<_> = failures.iter().take(40).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), shown.join("\n"));
}
