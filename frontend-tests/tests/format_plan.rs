//! Plans of memory formats: what is chosen by made-up costs, and results and gradients of planned modules.

mod rehearsal_support;

use keyway::nn::models::ResNet;
use keyway::nn::{
    BatchNorm2d, Conv2d, ConvOptions, Dropout, Flatten, Func, Linear, MaxPool2d, Module, Relu, Sequential,
};
use keyway::plan::{
    Costs, ESTIMATED_BANDWIDTH, ESTIMATED_BYTES_PER_PRODUCT, Plan, Work, plan, plan_with, preferences,
};
use keyway::rng::{self, Generator};
use keyway::{DType, Device, MemoryFormat, Result, Tensor};
use rehearsal_support::{load, remote};
use std::hash::{DefaultHasher, Hash, Hasher};

const BOTH: &[&str] = &["keyway_backend_channels_last"];

fn seeded<T>(run: impl FnOnce() -> Result<T>) -> T {
    rng::with_generator(&Generator::new(3), run).unwrap()
}

fn images(sizes: [usize; 4]) -> Tensor {
    seeded(|| Tensor::randn_with(sizes, DType::F64))
}

fn cnn() -> Sequential {
    seeded(|| {
        let conv =
            |inputs, outputs| Conv2d::without_bias(inputs, outputs, 3, ConvOptions::default().padding(1));
        let model = Sequential::new()
            .push(conv(3, 8)?)
            .push(BatchNorm2d::new(8)?)
            .push(Relu)
            .push(MaxPool2d::new(2))
            .push(conv(8, 4)?)
            .push(Flatten::default())
            .push(Linear::new(4 * 4 * 4, 5)?);
        model.to_dtype(DType::F64)?;
        Ok(model)
    })
}

fn resnet() -> ResNet {
    seeded(|| {
        let model = ResNet::resnet18(7)?;
        model.to_dtype(DType::F64)?;
        Ok(model)
    })
}

/// The formats of the steps that have one: `o` for row-major order, `L` for channels_last.
fn formats(plan: &Plan) -> String {
    let chosen = plan.steps.iter().filter_map(|step| step.format);
    chosen.map(|format| if format == MemoryFormat::ChannelsLast { 'L' } else { 'o' }).collect()
}

/// Costs by op and format in seconds, with conversions of one price.
fn by_op(op: impl Fn(&str, bool) -> f64, conversion: f64) -> impl Fn(&Work<'_>) -> f64 {
    move |work| match work {
        Work::Op { op: name, format, .. } => op(name, *format == MemoryFormat::ChannelsLast),
        _ => conversion,
    }
}

/// The scores of a module and the gradients of its parameters and of its input.
fn pass(module: &impl Module, input: &Tensor) -> Vec<(String, Vec<f64>)> {
    let input = input.copy().unwrap().requires_grad_(true).unwrap();
    module.zero_grad();
    let scores = module.forward(&input).unwrap();
    scores.square().unwrap().sum_all().unwrap().backward().unwrap();
    let values = |tensor: &Tensor| tensor.contiguous().unwrap().to_vec::<f64>().unwrap();
    let gradients = module.named_parameters().into_iter().map(|(name, parameter)| {
        let gradient = parameter.grad().unwrap_or_else(|| panic!("{name} has no gradient"));
        (name, values(&gradient))
    });
    let mut all: Vec<_> = gradients.collect();
    all.extend([("scores".into(), values(&scores)), ("input".into(), values(&input.grad().unwrap()))]);
    all
}

#[track_caller]
fn assert_equal(got: &[(String, Vec<f64>)], wanted: &[(String, Vec<f64>)]) {
    assert_eq!(got.len(), wanted.len());
    for ((name, got), (_, wanted)) in std::iter::zip(got, wanted) {
        let largest = wanted.iter().fold(1e-9, |most: f64, value| most.max(value.abs()));
        let off = std::iter::zip(got, wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(got.len() == wanted.len() && off <= 1e-8 * largest, "{name}: off by {off} of {largest}");
    }
}

#[test]
fn a_cnn_is_planned_by_hand_computed_costs() {
    let _one = load(BOTH);
    let (model, input) = (cnn(), images([2, 3, 8, 8]));
    let planned = |costs: &dyn Fn(&Work<'_>) -> f64| plan_with(&model, &input, Costs::Given(costs)).unwrap();
    // Each convolution gains 2, which pays one conversion, but not two.
    let conv = |op: &str, last: bool| match (op, last) {
        ("conv", false) => 3.0,
        _ => 1.0,
    };
    let plan = planned(&by_op(conv, 1.5));
    let ops = plan.steps.iter().filter(|step| step.format.is_some()).map(|step| step.op);
    assert_eq!(ops.collect::<Vec<_>>(), ["conv", "batch_norm", "relu", "max_pool_values", "conv", "reshape"]);
    assert_eq!((formats(&plan).as_str(), plan.conversions()), ("LLLLLL", 1));
    assert_eq!((plan.before, plan.after), (10.0, 7.5));
    assert_eq!(plan.steps[0].conversions[0].argument, 0);
    let last = |name: &str| (name.to_string(), MemoryFormat::ChannelsLast);
    assert_eq!(plan.parameters, ["0.weight", "4.weight"].map(last));
}

#[test]
fn conversions_that_cost_more_than_they_gain_are_left_out() {
    let _one = load(BOTH);
    let (model, input) = (cnn(), images([2, 3, 8, 8]));
    let conv = |op: &str, last: bool| if op == "conv" && !last { 3.0 } else { 1.0 };
    let plan = plan_with(&model, &input, Costs::Given(&by_op(conv, 5.0))).unwrap();
    assert_eq!((formats(&plan).as_str(), plan.conversions()), ("oooooo", 0));
    assert_eq!(plan.before, plan.after);
    // Pooling in channels_last is ruled out, and each convolution pays for a conversion. What costs the same stays row-major.
    let pool = |op: &str, last: bool| match op {
        "max_pool_values" if last => f64::INFINITY,
        _ => conv(op, last),
    };
    let plan = plan_with(&model, &input, Costs::Given(&by_op(pool, 0.5))).unwrap();
    assert_eq!((formats(&plan).as_str(), plan.conversions()), ("LoooLL", 3));
}

#[test]
fn planning_leaves_a_module_as_it_was() {
    let _one = load(BOTH);
    let model = cnn().push(Dropout::new(0.5).unwrap().generator(Generator::new(5)));
    let buffers = |model: &Sequential| -> Vec<Vec<f64>> {
        let values = |(_, t): (String, Tensor)| t.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        model.named_buffers().into_iter().map(values).collect()
    };
    let drawn = |model: &Sequential| model.named_generators()[0].1.state();
    let (before, state) = (buffers(&model), drawn(&model));
    let plan = plan(&model, &images([2, 3, 8, 8])).unwrap();
    assert_eq!((buffers(&model), drawn(&model)), (before, state));
    assert!(plan.after <= plan.before * 1.01 && plan.steps.iter().all(|step| step.before > 0.0));
    assert_eq!((plan.steps[0].path.as_str(), plan.steps[0].shape.as_slice()), ("0", &[2, 8, 8, 8][..]));
}

#[test]
fn planning_draws_nothing_from_the_default_generator() {
    let _one = load(BOTH);
    let model = cnn().push(Dropout::new(0.5).unwrap());
    let state = || rng::default_generator(Device::CPU).state();
    let before = state();
    plan(&model, &images([2, 3, 8, 8])).unwrap();
    assert_eq!(state(), before);
}

#[test]
fn a_resnet_has_the_results_and_gradients_that_it_has_without_a_plan() {
    let _one = load(BOTH);
    let input = images([2, 3, 33, 33]);
    let wanted = pass(&resnet(), &input);
    let conv = |op: &str, last: bool| if op == "conv" && !last { 3.0 } else { 1.0 };
    let all_last = plan_with(&resnet(), &input, Costs::Given(&by_op(conv, 1.5))).unwrap();
    let chosen = formats(&all_last);
    assert!(!chosen.contains('o') && all_last.conversions() == 1, "{chosen}");
    assert_eq!(all_last.parameters.len(), 20);
    assert_equal(&pass(&all_last.apply(resnet()).unwrap(), &input), &wanted);
    assert_equal(&pass(&plan(&resnet(), &input).unwrap().apply(resnet()).unwrap(), &input), &wanted);
}

#[test]
fn any_choice_has_the_same_results() {
    let _one = load(BOTH);
    let input = images([2, 3, 33, 33]);
    let wanted = pass(&resnet(), &input);
    for seed in 0..4u64 {
        // Each call of a shape has a random cost for each format, and conversions are free.
        let costs = |work: &Work<'_>| match work {
            Work::Op { op, format, shape, .. } => {
                let mut hash = DefaultHasher::new();
                (seed, op, shape, format.name()).hash(&mut hash);
                (hash.finish() % 100) as f64
            }
            _ => 1e-3,
        };
        let plan = plan_with(&resnet(), &input, Costs::Given(&costs)).unwrap();
        assert!(plan.conversions() > 3 && plan.after < plan.before, "{}", formats(&plan));
        assert_equal(&pass(&plan.apply(resnet()).unwrap(), &input), &wanted);
    }
}

#[test]
fn channels_last_input_is_taken_as_it_is() {
    let _one = load(BOTH);
    let model = cnn();
    let input = images([2, 3, 8, 8]).to(MemoryFormat::ChannelsLast).unwrap();
    let plan = plan_with(&model, &input, Costs::Given(&by_op(|_, _| 1.0, 1.0))).unwrap();
    assert_eq!((formats(&plan).as_str(), plan.conversions()), ("LLLLLL", 0));
}

#[test]
fn a_pass_that_makes_other_calls_than_the_plan_is_right() {
    let _one = load(BOTH);
    let model = || {
        seeded(|| {
            let conv = Conv2d::new(3, 3, 3)?;
            conv.to_dtype(DType::F64)?;
            // Other calls for other sizes of a batch.
            let branch = Func::new(|x| if x.shape()[0] > 2 { x.neg()?.exp()?.add(x) } else { x.relu() });
            Ok(Sequential::new().push(branch).push(conv).push(Relu))
        })
    };
    let last = |_: &str, last: bool| f64::from(!last);
    let plan = plan_with(&model(), &images([2, 3, 8, 8]), Costs::Given(&by_op(last, 0.1))).unwrap();
    let planned = plan.apply(model()).unwrap();
    for batch in [1, 2, 3] {
        let input = images([batch, 3, 8, 8]);
        assert_equal(&pass(&planned, &input), &pass(&model(), &input));
    }
}

#[test]
fn a_cnn_is_planned_by_what_its_backends_declare() {
    let _one = load(BOTH);
    let (model, input) = (cnn(), images([2, 3, 8, 8]));
    let planned = || plan_with(&model, &input, Costs::Declared).unwrap();
    let plan = planned();
    assert_eq!((formats(&plan).as_str(), plan.conversions()), ("LLLLLL", 1));
    assert_eq!(plan.parameters.len(), 2);
    // The image of 2 * 3 * 8 * 8 doubles, the kernel of 8 * 3 * 3 * 3 and the result of 2 * 8 * 8 * 8, with 27 products each.
    let bytes = (8 * (384 + 216 + 1024)) as f64 + (1024 * 27) as f64 * ESTIMATED_BYTES_PER_PRODUCT;
    let images: Vec<_> = plan.steps.iter().filter(|step| step.format.is_some()).collect();
    let conv = images[0];
    let close = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 1e-9, "{got}, not {wanted}");
    close(conv.before, bytes / ESTIMATED_BANDWIDTH);
    let declared = preferences().unwrap();
    for step in &images[..4] {
        let cost = declared.iter().find(|d| (d.op, d.format) == (step.op, "channels_last")).map(|d| d.cost);
        close(step.after, step.before * cost.unwrap_or(1.0));
        assert_eq!(cost.is_some(), step.op != "relu", "{}", step.op);
    }
    close(conv.conversions[0].seconds, f64::from(2 * 384 * 8) / ESTIMATED_BANDWIDTH);
    let again = planned();
    assert_eq!((again.before, again.after), (plan.before, plan.after), "nothing is measured");
    // With only the CPU backend the gain is smaller, and does not outweigh the conversion of the image.
    let gained = images[3].before - images[3].after;
    assert!(gained > 0.0 && gained < conv.conversions[0].seconds);
}

#[test]
fn a_device_declares_a_format_for_its_kernels() {
    let _one = load(&["keyway_test_device"]);
    let input = Tensor::ones((1, 2, 4, 4)).unwrap().to_device(remote(0)).unwrap();
    let exps = |count: usize| {
        let model = Func::new(move |x| (0..count).try_fold(x.clone(), |x, _| x.exp()));
        plan_with(&model, &input, Costs::Declared).unwrap()
    };
    // The declared 0.25 saves 0.75 * 256 bytes of traffic in each call; a conversion is 256.
    assert_eq!((formats(&exps(1)).as_str(), exps(1).conversions()), ("o", 0));
    assert_eq!((formats(&exps(2)).as_str(), exps(2).conversions()), ("LL", 1));
}

#[test]
fn declarations_are_listed_with_their_plugins() {
    let _one = load(&["keyway_backend_channels_last", "keyway_test_int8"]);
    let all = preferences().unwrap();
    let of = |op: &str, format: &str| *all.iter().find(|d| (d.op, d.format) == (op, format)).unwrap();
    let conv = of("conv", "channels_last");
    assert_eq!((conv.device, conv.plugin, conv.is_planned()), ("cpu", "keyway-channels-last", true));
    assert_eq!(of("max_pool_values", "channels_last").plugin, "keyway-cpu");
    let product = of("mm", "test.keyway/int8");
    assert_eq!((product.cost, product.plugin, product.is_planned()), (0.5, "keyway.test/int8", false));
}

#[test]
fn ops_without_a_declaration_are_an_error() {
    let _one = load(BOTH);
    let images = images([1, 3, 8, 8]);
    let error = plan_with(&Func::new(|x| x.exp()?.neg()), &images, Costs::Declared).unwrap_err().to_string();
    for part in ["declare a memory format", "none for `exp` on `cpu`, `neg` on `cpu`", "Costs::Measured"] {
        assert!(error.contains(part), "{error}");
    }
    // Without images there is nothing to choose.
    let flat = images.flatten_all().unwrap();
    let plan = plan_with(&Func::new(|x| x.exp()), &flat, Costs::Declared).unwrap();
    assert_eq!((plan.steps.len(), formats(&plan).as_str()), (1, ""));
}

#[test]
fn what_cannot_be_planned_is_an_error() {
    let _one = load(BOTH);
    let strided = Func::new(|x| x.transpose(1, 2)?.as_strided((1, 3), (0, 1)));
    let error = plan(&strided, &images([1, 3, 8, 8])).unwrap_err().to_string();
    assert!(error.contains("as_strided") && error.contains("call `contiguous` before"), "{error}");
    let error = plan(&cnn(), &images([1, 4, 8, 8])).unwrap_err().to_string();
    assert!(error.starts_with("conv"), "{error}");
    let plan = plan(&cnn(), &images([2, 3, 8, 8])).unwrap();
    let error = plan.apply(Relu).unwrap_err().to_string();
    assert!(error.contains("0.weight, which the plan of another module has"), "{error}");
    // After the failure the thread works as before.
    assert!(cnn().forward(&images([2, 3, 8, 8])).is_ok());
}
