//! Optimizers with parameters that share memory, with f16 and bf16 in any order, with step counts on the device, and with
//! options out of range. The expected values are those of PyTorch 2.15.

use keyway::nn::StateDict;
use keyway::optim::lr_scheduler::{
    CosineAnnealingLr, CosineAnnealingWarmRestarts, ExponentialLr, LambdaLr, LinearLr, LrScheduler,
    MultiStepLr, PolynomialLr, ReduceLrOnPlateau, ReduceLrOnPlateauOptions, StepLr, WarmupLr,
};
use keyway::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Group, Optimizer, RmsProp,
    RmsPropOptions, Sgd, SgdOptions,
};
use keyway::{DType, Result, Tensor};

fn full(sizes: &[usize], value: f64, dtype: DType) -> Tensor {
    Tensor::full_with(sizes, value, dtype).unwrap()
}

fn leaf(t: &Tensor) -> Tensor {
    t.detach().requires_grad_(true).unwrap()
}

fn near(what: &str, got: &Tensor, expected: &[f64], tolerance: f64) {
    let got = got.detach().to_vec_f64().unwrap();
    let close = got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= tolerance);
    assert!(close && got.len() == expected.len(), "{what}: expected {expected:?}, got {got:?}");
}

type MakeOne<'a> = dyn Fn(Tensor) -> Box<dyn Optimizer> + 'a;
type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

fn sgd(parameters: Vec<Tensor>) -> Box<dyn Optimizer> {
    Box::new(Sgd::new(parameters, SgdOptions { lr: 0.1, ..SgdOptions::default() }).unwrap())
}

fn momentum(parameters: Vec<Tensor>) -> Box<dyn Optimizer> {
    let o = SgdOptions { lr: 0.1, momentum: 0.9, weight_decay: 0.1, ..SgdOptions::default() };
    Box::new(Sgd::new(parameters, o).unwrap())
}

fn adam(parameters: Vec<Tensor>) -> Box<dyn Optimizer> {
    let o = AdamOptions { lr: 0.1, weight_decay: 0.1, ..AdamOptions::default() };
    Box::new(Adam::new(parameters, o).unwrap())
}

fn adamw(parameters: Vec<Tensor>) -> Box<dyn Optimizer> {
    let o = AdamWOptions { lr: 0.1, weight_decay: 0.1, ..AdamWOptions::default() };
    Box::new(AdamW::new(parameters, o).unwrap())
}

#[test]
fn parameters_that_share_memory_are_stepped_one_after_the_other() {
    // Two steps with gradients of 0.5 and 1: elements that one parameter has, and those that both have.
    let facts: [(&str, Make, f64, f64); 4] = [
        ("sgd", sgd, 0.85, 0.7),
        ("momentum", momentum, 0.7766, 0.55715606),
        ("adam", adam, 0.8025029703202309, 0.6049032505359994),
        ("adamw", adamw, 0.7845818006185094, 0.5734848931914317),
    ];
    for (name, make, once, twice) in facts {
        for (parts, expected) in [
            ([(0, 3), (1, 3)], [once, twice, twice, once]),
            ([(0, 4), (0, 4)], [twice; 4]),
            ([(0, 2), (2, 2)], [once; 4]),
        ] {
            let whole = full(&[4], 1.0, DType::F64);
            let mut parameters: Vec<Tensor> =
                parts.iter().map(|&(at, len)| leaf(&whole.narrow(0, at, len).unwrap())).collect();
            // More tensors than are compared in pairs.
            parameters.extend((0..6).map(|_| leaf(&full(&[4], 1.0, DType::F64))));
            let mut optimizer = make(parameters.clone());
            for round in 1..3 {
                for p in &parameters {
                    p.set_grad(full(p.shape(), 0.5 * f64::from(round), DType::F64)).unwrap();
                }
                optimizer.step().unwrap();
            }
            near(&format!("{name} {parts:?}"), &whole, &expected, 1e-12);
            parameters[2..].iter().for_each(|p| near(name, p, &[once; 4], 1e-12));
        }
    }
}

#[test]
fn parameters_of_two_groups_that_share_memory_are_stepped_in_order() {
    // The second group forgets what the first one did to its share: lr * weight_decay is 1.
    let whole = full(&[3], 1.0, DType::F64);
    let (a, b) = (leaf(&whole.narrow(0, 0, 2).unwrap()), leaf(&whole.narrow(0, 1, 2).unwrap()));
    let options = |weight_decay| SgdOptions { lr: 0.5, weight_decay, ..SgdOptions::default() };
    let group = |p: &Tensor, decay| Group { parameters: vec![p.clone()], options: options(decay) };
    let mut optimizer = Sgd::with_groups(vec![group(&a, 0.0), group(&b, 2.0)]).unwrap();
    for p in [&a, &b] {
        p.set_grad(full(&[2], 0.25, DType::F64)).unwrap();
    }
    optimizer.step().unwrap();
    near("two groups", &whole, &[0.875, -0.125, -0.125], 0.0);
}

/// A tensor with these values: row-major, transposed in memory, or with gaps.
fn laid(values: &Tensor, way: usize) -> Tensor {
    let sizes = values.shape();
    match way {
        0 => values.contiguous().unwrap().copy().unwrap(),
        1 => values.t().unwrap().contiguous().unwrap().t().unwrap(),
        _ => {
            let wide = full(&[sizes[0], 2 * sizes[1]], 7.0, values.dtype());
            wide.slice(1, None, None, 2).unwrap().copy_(values).unwrap();
            wide.slice(1, None, None, 2).unwrap()
        }
    }
}

#[test]
fn halves_have_the_same_numbers_however_they_lie() {
    let adam = AdamWOptions { lr: 1e-2, ..AdamWOptions::default() };
    let sgd = SgdOptions { lr: 1e-2, momentum: 0.9, weight_decay: 0.01, ..SgdOptions::default() };
    let adam_of = |p: Tensor| -> Box<dyn Optimizer> { Box::new(Adam::new(vec![p], adam).unwrap()) };
    let adamw_of = |p: Tensor| -> Box<dyn Optimizer> { Box::new(AdamW::new(vec![p], adam).unwrap()) };
    let sgd_of = |p: Tensor| -> Box<dyn Optimizer> { Box::new(Sgd::new(vec![p], sgd).unwrap()) };
    let nesterov_of = |p: Tensor| -> Box<dyn Optimizer> {
        Box::new(Sgd::new(vec![p], SgdOptions { nesterov: true, ..sgd }).unwrap())
    };
    let plain_of = |p: Tensor| -> Box<dyn Optimizer> {
        Box::new(Sgd::new(vec![p], SgdOptions { momentum: 0.0, ..sgd }).unwrap())
    };
    let makes: [(&str, &MakeOne<'_>); 5] = [
        ("adam", &adam_of),
        ("adamw", &adamw_of),
        ("sgd", &sgd_of),
        ("nesterov", &nesterov_of),
        ("plain", &plain_of),
    ];
    for dtype in [DType::F16, DType::BF16] {
        for (name, make) in makes {
            let mut all = Vec::new();
            for (of_parameter, of_grad) in [(0, 0), (0, 1), (1, 0), (2, 0), (0, 2), (2, 2), (1, 1)] {
                let p = leaf(&laid(&full(&[2, 3], 1.0, dtype), of_parameter));
                let mut optimizer = make(p.clone());
                for step in 0..20 {
                    let values = (0..6).map(|i| 2e-4 * f64::from(1 + (i * 5 + step * 3) % 7)).collect();
                    let grad = Tensor::from_vec::<f64>(values, &[2, 3]).unwrap().to_dtype(dtype).unwrap();
                    p.set_grad(laid(&grad, of_grad)).unwrap();
                    optimizer.step().unwrap();
                }
                let state = optimizer.state_dict().unwrap();
                let mut numbers = p.detach().to_vec_f64().unwrap();
                state.values().for_each(|t| numbers.extend(t.to_vec_f64().unwrap()));
                all.push(numbers);
            }
            assert!(all[0].iter().all(|x| x.is_finite()), "{name} {dtype}: {:?}", all[0]);
            for (nth, numbers) in all.iter().enumerate() {
                assert_eq!(numbers, &all[0], "{name} {dtype}, way {nth}");
            }
        }
    }
}

#[test]
fn a_half_that_is_transposed_has_pytorchs_fused_numbers() {
    let facts = [
        (DType::F16, 1.0, [0.810546875, 0.80908203125, 0.80859375, 0.8076171875, 0.80810546875, 0.80859375]),
        (DType::BF16, 4.0, [0.7890625, 0.7890625, 0.79296875, 0.78125, 0.796875, 0.78515625]),
    ];
    for (dtype, loose, expected) in facts {
        let p = leaf(&full(&[2, 3], 1.0, dtype));
        let o = AdamOptions { lr: 1e-2, weight_decay: 0.01, ..AdamOptions::default() };
        let mut optimizer = Adam::new(vec![p.clone()], o).unwrap();
        for step in 0..20 {
            let values = (0..6).map(|i| 2e-4 * f64::from(1 + (i * 5 + step * 3) % 7)).collect();
            let grad = Tensor::from_vec::<f64>(values, &[2, 3]).unwrap().to_dtype(dtype).unwrap();
            p.set_grad(laid(&grad, 1)).unwrap();
            optimizer.step().unwrap();
        }
        near(&format!("adam {dtype}"), &p, &expected, 0.005 * loose);
    }
}

/// The state of an optimiser and its parameters, to see that nothing was changed.
fn everything(optimizer: &dyn Optimizer) -> Vec<(String, Vec<u64>)> {
    let bits = |t: &Tensor| t.detach().to_vec_f64().unwrap().into_iter().map(f64::to_bits).collect();
    let state: StateDict = optimizer.state_dict().unwrap();
    let mut all: Vec<_> = state.iter().map(|(name, t)| (name.clone(), bits(t))).collect();
    all.extend(optimizer.parameters().iter().map(|p| (String::new(), bits(p))));
    all
}

fn capturable(parameters: Vec<Tensor>) -> Result<AdamW> {
    let o = AdamWOptions { lr: 0.1, weight_decay: 0.0, ..AdamWOptions::default() };
    AdamW::new(parameters, o)?.capturable()
}

#[test]
fn a_count_on_the_device_counts_no_step_without_gradients() {
    let p = leaf(&full(&[1], 1.0, DType::F64));
    let mut optimizer = capturable(vec![p.clone()]).unwrap();
    for step in 0..6 {
        p.zero_grad();
        if step >= 4 {
            p.set_grad(full(&[1], 0.5, DType::F64)).unwrap();
        }
        optimizer.step().unwrap();
    }
    near("two of six", &p, &[0.8000000040000006], 1e-12);
    assert_eq!(optimizer.state_dict().unwrap()["state.0.step"].to_vec::<i64>().unwrap(), [2]);
}

#[test]
fn parameters_that_do_not_step_together_have_no_count_on_the_device() {
    let parameters: Vec<Tensor> = (0..3).map(|_| leaf(&full(&[2, 2], 1.0, DType::F64))).collect();
    let grads = |which: [bool; 3]| {
        for (p, has) in parameters.iter().zip(which) {
            p.zero_grad();
            if has {
                p.set_grad(full(&[2, 2], 0.5, DType::F64)).unwrap();
            }
        }
    };
    let mut optimizer = capturable(parameters.clone()).unwrap();
    // A parameter that never has a gradient does not affect others.
    for _ in 0..2 {
        grads([true, true, false]);
        optimizer.step().unwrap();
    }
    let before = everything(&optimizer);
    for (which, nth) in [([true, false, false], 1), ([true, true, true], 2), ([false, false, true], 0)] {
        grads(which);
        let text = optimizer.step().unwrap_err().to_string();
        assert!(text.contains("AdamW") && text.contains("capturable"), "{text}");
        assert!(text.contains(&format!("parameter {nth}")), "{text}");
        assert_eq!(everything(&optimizer), before);
    }
    grads([true, true, false]);
    optimizer.step().unwrap();
    assert_eq!(optimizer.state_dict().unwrap()["state.1.step"].to_vec::<i64>().unwrap(), [3]);
}

#[test]
fn a_step_with_a_count_on_the_device_that_is_refused_changes_nothing() {
    let whole = full(&[3], 1.0, DType::F64);
    let shared = [leaf(&whole.narrow(0, 0, 2).unwrap()), leaf(&whole.narrow(0, 1, 2).unwrap())];
    let apart = [leaf(&full(&[2, 2], 1.0, DType::F64)), leaf(&full(&[2, 2], 1.0, DType::F64))];
    for (parameters, transposed) in [(shared, false), (apart, true)] {
        let mut optimizer = capturable(parameters.to_vec()).unwrap();
        let before = everything(&optimizer);
        for (nth, p) in parameters.iter().enumerate() {
            let grad = full(p.shape(), 0.5, DType::F64);
            p.set_grad(if transposed && nth == 1 { laid(&grad, 1) } else { grad }).unwrap();
        }
        let text = optimizer.step().unwrap_err().to_string();
        assert!(text.contains("capturable"), "{text}");
        assert_eq!(everything(&optimizer), before);
    }
}

#[test]
fn rates_out_of_range_are_refused_and_nothing_is_set() {
    let two = || {
        let parameters = [1.0, 2.0].map(|x| leaf(&full(&[1], x, DType::F64)));
        parameters.map(|p| vec![p])
    };
    let groups = |name: &str| -> Box<dyn Optimizer> {
        macro_rules! make {
            ($kind:ident, $options:expr) => {{
                let [a, b] = two().map(|parameters| Group { parameters, options: $options });
                Box::new($kind::with_groups(vec![a, b]).unwrap())
            }};
        }
        match name {
            "Sgd" => make!(Sgd, SgdOptions::default()),
            "Adam" => make!(Adam, AdamOptions::default()),
            "AdamW" => make!(AdamW, AdamWOptions::default()),
            _ => make!(Adagrad, AdagradOptions::default()),
        }
    };
    for name in ["Sgd", "Adam", "AdamW", "Adagrad"] {
        let mut optimizer = groups(name);
        let before = optimizer.learning_rates();
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let text = optimizer.set_learning_rates(&[0.5, wrong]).unwrap_err().to_string();
            assert!(text.starts_with(&format!("{name}:")) && text.contains("lr"), "{text}");
            assert_eq!(optimizer.learning_rates(), before, "{name}");
        }
        optimizer.set_learning_rates(&[0.25, before[1]]).unwrap();
        assert_eq!(optimizer.learning_rates(), [0.25, before[1]]);
        let mut state = optimizer.state_dict().unwrap();
        state.insert("group.0.lr".into(), Tensor::new(-1.0f64).unwrap());
        let text = optimizer.load_state_dict(&state).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{name}:")), "{text}");
    }
    let wrong = AdamWOptions { lr: -1.0, ..AdamWOptions::default() };
    let text = AdamW::new(two()[0].clone(), wrong).unwrap_err().to_string();
    assert!(text.starts_with("AdamW:"), "{text}");
}

#[test]
fn a_schedule_that_leaves_the_range_is_refused_where_it_does() {
    let mut optimizer = sgd(vec![leaf(&full(&[1], 1.0, DType::F64))]);
    let mut schedule = StepLr::new(&*optimizer, 1, 1e200).unwrap();
    schedule.step(&mut *optimizer).unwrap();
    let text = schedule.step(&mut *optimizer).unwrap_err().to_string();
    assert!(text.contains("lr") && text.contains("inf"), "{text}");
    assert_eq!((schedule.epoch(), optimizer.learning_rates()), (1, vec![0.1 * 1e200]));
}

#[test]
fn rates_are_as_many_as_groups() {
    let mut optimizer = sgd(vec![leaf(&full(&[1], 1.0, DType::F32))]);
    let before = optimizer.learning_rates();
    let wrong = optimizer.set_learning_rates(&[0.5, 0.25]).unwrap_err().to_string();
    assert!(wrong.contains("one for each group") && wrong.contains("2 for 1"), "{wrong}");
    assert!(optimizer.set_learning_rates(&[]).is_err());
    assert_eq!(optimizer.learning_rates(), before);
}

/// The optimizers, each with its state of a parameter.
const ALL: [(&str, Make); 6] = [
    ("sgd", sgd),
    ("momentum", momentum),
    ("adam", adam),
    ("adamw", adamw),
    ("adagrad", |p| Box::new(Adagrad::new(p, AdagradOptions::default()).unwrap())),
    ("rms_prop", |p| {
        Box::new(RmsProp::new(p, RmsPropOptions { momentum: 0.9, ..Default::default() }).unwrap())
    }),
];

fn values_of(state: &StateDict) -> Vec<(String, Vec<f64>)> {
    state.iter().map(|(name, tensor)| (name.clone(), tensor.to_vec_f64().unwrap())).collect()
}

fn leaves(count: usize) -> Vec<Tensor> {
    (0..count).map(|i| leaf(&full(&[2], 1.0 + i as f64, DType::F64))).collect()
}

fn stepped(make: Make, count: usize) -> Box<dyn Optimizer> {
    let parameters = leaves(count);
    let mut optimizer = make(parameters.clone());
    for parameter in &parameters {
        parameter.mul(parameter).unwrap().sum_all().unwrap().backward().unwrap();
    }
    optimizer.step().unwrap();
    optimizer
}

#[test]
fn the_state_of_another_number_of_parameters_is_refused() {
    for (name, make) in ALL {
        for (saved, own) in [(1, 2), (2, 1), (2, 3), (3, 2)] {
            let state = stepped(make, saved).state_dict().unwrap();
            let mut other = stepped(make, own);
            let before = values_of(&other.state_dict().unwrap());
            let text = other.load_state_dict(&state).unwrap_err().to_string();
            let expected = format!(
                "expected the state of an optimiser with {own} parameters in group 0, got one with {saved}"
            );
            assert!(text.contains(&expected), "{name}: {text}");
            assert_eq!(values_of(&other.state_dict().unwrap()), before, "{name}");
        }
    }
}

#[test]
fn the_state_of_other_groups_is_refused() {
    let grouped = |sizes: &[usize]| {
        let group = |&size: &usize| Group { parameters: leaves(size), options: AdamOptions::default() };
        Adam::with_groups(sizes.iter().map(group).collect()).unwrap()
    };
    for (saved, own, part) in [
        (&[1, 2][..], &[2, 1][..], "2 parameters in group 0, got one with 1"),
        (&[3], &[1, 2], "2 groups, got one with 1"),
        (&[1, 2], &[3], "1 groups, got one with 2"),
    ] {
        let state = grouped(saved).state_dict().unwrap();
        let text = grouped(own).load_state_dict(&state).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
}

/// A state dict without numbers of parameters, as those that were written before there were any.
#[test]
fn an_older_state_without_counts_is_loaded_as_far_as_it_can_be_checked() {
    let older = |count: usize| {
        let mut state = stepped(adam, count).state_dict().unwrap();
        assert!(state.remove("group.0.parameters").is_some());
        state
    };
    stepped(adam, 2).load_state_dict(&older(2)).unwrap();
    let text = stepped(adam, 2).load_state_dict(&older(3)).unwrap_err().to_string();
    assert!(text.contains("2 parameters, got one with 3"), "{text}");
}

type Schedule = fn(&mut dyn Optimizer) -> Box<dyn LrScheduler>;

const SCHEDULES: [(&str, Schedule); 9] = [
    ("steps", |o| Box::new(StepLr::new(o, 2, 0.5).unwrap())),
    ("milestones", |o| Box::new(MultiStepLr::new(o, &[1, 3], 0.5).unwrap())),
    ("exponential", |o| Box::new(ExponentialLr::new(o, 0.5).unwrap())),
    ("cosine", |o| Box::new(CosineAnnealingLr::new(o, 10).unwrap())),
    ("restarts", |o| Box::new(CosineAnnealingWarmRestarts::new(o, 3).unwrap())),
    ("linear", |o| Box::new(LinearLr::new(o, 0.25, 1.0, 8).unwrap())),
    ("lambda", |o| Box::new(LambdaLr::new(o, |epoch| 0.9f64.powi(epoch as i32)).unwrap())),
    ("polynomial", |o| Box::new(PolynomialLr::new(o, 10, 2.0).unwrap())),
    ("warm-up", |o| {
        let then = ExponentialLr::new(o, 0.5).unwrap();
        Box::new(WarmupLr::new(o, 0.1, 2, then).unwrap())
    }),
];

#[test]
fn a_schedule_made_after_loading_begins_from_the_first_rate() {
    for (name, schedule) in SCHEDULES {
        for (optimizer, make) in ALL {
            let mut first = stepped(make, 1);
            let mut whole = schedule(&mut *first);
            (0..4).for_each(|_| whole.step(&mut *first).unwrap());
            let state = first.state_dict().unwrap();
            let mut second = stepped(make, 1);
            second.load_state_dict(&state).unwrap();
            assert_eq!(second.learning_rates(), first.learning_rates());
            let mut resumed = schedule(&mut *second);
            resumed.seek(4, &mut *second).unwrap();
            for _ in 0..3 {
                assert_eq!(second.learning_rates(), first.learning_rates(), "{name} of {optimizer}");
                whole.step(&mut *first).unwrap();
                resumed.step(&mut *second).unwrap();
            }
        }
    }
}

#[test]
fn a_rate_set_by_hand_is_where_the_next_schedule_begins() {
    let mut optimizer = sgd(leaves(1));
    ExponentialLr::new(&*optimizer, 0.5).unwrap().step(&mut *optimizer).unwrap();
    assert_eq!(optimizer.initial_learning_rates(), Some(vec![0.1]));
    // A plateau lowers the rate of the moment, and not that.
    let options = ReduceLrOnPlateauOptions { patience: 0, factor: 0.5, ..Default::default() };
    let mut plateau = ReduceLrOnPlateau::new(options).unwrap();
    (0..2).for_each(|_| plateau.step(1.0, &mut *optimizer).unwrap());
    assert_eq!(
        (optimizer.learning_rates(), optimizer.initial_learning_rates()),
        (vec![0.025], Some(vec![0.1]))
    );
    optimizer.set_learning_rates(&[0.5]).unwrap();
    assert_eq!(optimizer.initial_learning_rates(), None);
    ExponentialLr::new(&*optimizer, 0.5).unwrap().step(&mut *optimizer).unwrap();
    assert_eq!(optimizer.learning_rates(), [0.25]);
    let wrong = optimizer.set_initial_learning_rates(Some(&[-1.0])).unwrap_err().to_string();
    assert!(wrong.contains("lr") && optimizer.initial_learning_rates() == Some(vec![0.5]), "{wrong}");
}
