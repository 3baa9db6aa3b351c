//! Optimisers against 50 steps of PyTorch 2.15 in f64.
use keyway::optim::lr_scheduler::{CosineAnnealingLr, LrScheduler, StepLr};
use keyway::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Group, Optimizer, RmsProp,
    RmsPropOptions, Sgd, SgdOptions, clip_grad_norm_, clip_grad_value_,
};
use keyway::{DType, Result, Tensor};

/// The parameters `a` [2, 2] and `b` [2], and the loss `sum(s a^2) / 2 + sum(b^4) / 4 + sum(a b)`.
struct Problem {
    a: Tensor,
    b: Tensor,
    s: Tensor,
}

impl Problem {
    fn new() -> Problem {
        let leaf = |values: &[f64], sizes: &[usize]| {
            Tensor::from_vec(values.to_vec(), sizes).unwrap().requires_grad_(true).unwrap()
        };
        Problem {
            a: leaf(&[1.0, -2.0, 0.5, 3.0], &[2, 2]),
            b: leaf(&[0.7, -1.3], &[2]),
            s: Tensor::from_vec(vec![2.0f64, 0.5, 1.0, 4.0], [2, 2]).unwrap(),
        }
    }

    fn parameters(&self) -> Vec<Tensor> {
        vec![self.a.clone(), self.b.clone()]
    }

    fn backward(&self) -> Result<()> {
        let (a, b) = (&self.a, &self.b);
        let square = b.mul(b)?;
        let loss = a.mul(a)?.mul(&self.s)?.sum_all()?.mul(0.5)?;
        let loss = loss.add(&square.mul(&square)?.sum_all()?.mul(0.25)?)?.add(&a.mul(b)?.sum_all()?)?;
        loss.backward()
    }

    fn values(&self) -> Vec<f64> {
        [self.a.to_vec::<f64>().unwrap(), self.b.to_vec::<f64>().unwrap()].concat()
    }

    fn train(&self, optimizer: &mut dyn Optimizer, steps: usize, mut after: impl FnMut(&mut dyn Optimizer)) {
        for _ in 0..steps {
            optimizer.zero_grad();
            self.backward().unwrap();
            optimizer.step().unwrap();
            after(optimizer);
        }
    }
}

fn near(name: &str, got: &[f64], expected: &[f64]) {
    let close = got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= 1e-10 * (1.0 + e.abs()));
    assert!(close && got.len() == expected.len(), "{name}: expected {expected:?}, got {got:?}");
}

type Make = fn(Vec<Tensor>) -> Result<Box<dyn Optimizer>>;

fn sgd(parameters: Vec<Tensor>, options: SgdOptions) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(Sgd::new(parameters, SgdOptions { lr: 0.05, ..options })?))
}

fn rms_prop(parameters: Vec<Tensor>, options: RmsPropOptions) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(RmsProp::new(parameters, RmsPropOptions { lr: 0.05, ..options })?))
}

const CASES: [(&str, Make, [f64; 6]); 15] = [
    (
        "sgd",
        |p| sgd(p, SgdOptions::default()),
        [
            -0.08420001104873567,
            -0.2335383741325402,
            -0.12346672225888927,
            -0.015790953365675382,
            0.23932251075058816,
            0.12514418512013356,
        ],
    ),
    (
        "sgd, weight decay",
        |p| sgd(p, SgdOptions { weight_decay: 0.1, ..Default::default() }),
        [
            -0.06791255714728807,
            -0.14545817731316568,
            -0.09970452026973309,
            -0.002271732876495743,
            0.19363305344062162,
            0.04791597010380465,
        ],
    ),
    (
        "sgd, momentum",
        |p| sgd(p, SgdOptions { momentum: 0.9, ..Default::default() }),
        [
            0.6143453222901091,
            3.412723786639402,
            1.5366856392672688,
            0.4971695637639996,
            -1.379077290089175,
            -1.5297774193584457,
        ],
    ),
    (
        "sgd, dampening",
        |p| sgd(p, SgdOptions { momentum: 0.9, dampening: 0.3, weight_decay: 0.1, ..Default::default() }),
        [
            0.5579277474067499,
            2.1343597871274493,
            1.0696322654432797,
            0.380764475400812,
            -1.2059085403186702,
            -1.3106411583937454,
        ],
    ),
    (
        "sgd, nesterov",
        |p| sgd(p, SgdOptions { momentum: 0.9, nesterov: true, weight_decay: 0.1, ..Default::default() }),
        [
            0.571342016373731,
            -2.3319051704048666,
            1.2288757113956674,
            -0.3311099514957396,
            -1.2017653462951599,
            1.362832283693692,
        ],
    ),
    (
        "adam",
        |p| Ok(Box::new(Adam::new(p, AdamOptions { lr: 0.05, ..Default::default() })?)),
        [
            0.025599988220694554,
            0.22880399102374296,
            0.22299066555783703,
            0.8913133333047643,
            -0.17304262420369462,
            -1.0238952101820558,
        ],
    ),
    (
        "adam, weight decay",
        |p| {
            let options =
                AdamOptions { lr: 0.05, beta1: 0.8, beta2: 0.95, eps: 1e-3, weight_decay: 0.1, lazy: false };
            Ok(Box::new(Adam::new(p, options)?))
        },
        [
            0.10584775427332531,
            0.2079072610294632,
            0.22767285919689084,
            0.8882043631486504,
            -0.36535617256357616,
            -0.9946185894715078,
        ],
    ),
    (
        "adamw",
        |p| Ok(Box::new(AdamW::new(p, AdamWOptions { lr: 0.05, ..AdamWOptions::default() })?)),
        [
            0.025838141605250588,
            0.24426581393685898,
            0.2201877096000839,
            0.8572816108930096,
            -0.16992090023893447,
            -1.0166897848568475,
        ],
    ),
    (
        "adamw, weight decay",
        |p| {
            let options =
                AdamWOptions { lr: 0.05, beta1: 0.8, beta2: 0.95, weight_decay: 0.5, ..Default::default() };
            Ok(Box::new(AdamW::new(p, options)?))
        },
        [
            0.06696592573525048,
            0.5586573413473307,
            0.13846722374687503,
            0.1728160862932845,
            -0.22744890268482093,
            -0.8638075891641153,
        ],
    ),
    (
        "adagrad",
        |p| Ok(Box::new(Adagrad::new(p, AdagradOptions { lr: 0.05, ..Default::default() })?)),
        [
            0.4626671470193259,
            -1.3995749316143407,
            0.03187895076559986,
            2.3889274669625054,
            0.21185679625650325,
            -1.0044037591595476,
        ],
    ),
    (
        "adagrad, decay",
        |p| {
            let initial_accumulator_value = 0.3;
            let options = AdagradOptions {
                lr: 0.05,
                lr_decay: 0.02,
                weight_decay: 0.1,
                initial_accumulator_value,
                eps: 1e-3,
            };
            Ok(Box::new(Adagrad::new(p, options)?))
        },
        [
            0.5644631550729956,
            -1.5338942847566055,
            0.10911104955358988,
            2.5220739050186216,
            0.29564343552832345,
            -1.0033546476927493,
        ],
    ),
    (
        "rmsprop",
        |p| rms_prop(p, RmsPropOptions::default()),
        [
            0.6122346941442486,
            2.2542768418764156,
            1.224512379597882,
            0.3380382210832942,
            -1.2246423002636069,
            -1.3720232872963374,
        ],
    ),
    (
        "rmsprop, momentum",
        |p| rms_prop(p, RmsPropOptions { momentum: 0.9, weight_decay: 0.1, ..Default::default() }),
        [
            0.5361072934958822,
            2.535221423855786,
            1.1003379264116195,
            0.1456486402396799,
            -1.1989061818775295,
            -1.3498745533926084,
        ],
    ),
    (
        "rmsprop, centred",
        |p| rms_prop(p, RmsPropOptions { centered: true, alpha: 0.9, eps: 0.1, ..Default::default() }),
        [
            0.3623572031238394,
            1.9990033994548304,
            0.6548231520771552,
            0.3443821623586087,
            -0.922265614251972,
            -1.3235920924653513,
        ],
    ),
    (
        "rmsprop, centred, momentum",
        |p| rms_prop(p, RmsPropOptions { centered: true, momentum: 0.5, ..Default::default() }),
        [
            0.6123730605397103,
            2.9902202747036077,
            1.2247461549837104,
            0.37436440016195194,
            -1.2247453750239794,
            -1.4984240397922428,
        ],
    ),
];

#[test]
fn trajectories_are_pytorchs() {
    for (name, make, expected) in CASES {
        let problem = Problem::new();
        let mut optimizer = make(problem.parameters()).unwrap();
        problem.train(optimizer.as_mut(), 50, |_| ());
        near(name, &problem.values(), &expected);
    }
}

#[test]
fn a_run_goes_on_from_its_saved_state() {
    for (name, make, expected) in CASES {
        let first = Problem::new();
        let mut optimizer = make(first.parameters()).unwrap();
        first.train(optimizer.as_mut(), 20, |_| ());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optimizer.safetensors");
        keyway::io::safetensors::save(&path, &optimizer.state_dict().unwrap()).unwrap();

        let second = Problem::new();
        let _off = keyway::autograd::no_grad();
        second.a.copy_(&first.a).unwrap();
        second.b.copy_(&first.b).unwrap();
        drop(_off);
        let mut resumed = make(second.parameters()).unwrap();
        resumed.set_learning_rates(&[7.0]).unwrap();
        resumed.load_state_dict(&keyway::io::safetensors::load(&path).unwrap()).unwrap();
        second.train(resumed.as_mut(), 30, |_| ());
        near(name, &second.values(), &expected);
    }
}

#[test]
fn groups_and_schedules_are_pytorchs() {
    let problem = Problem::new();
    let slow = SgdOptions { lr: 0.05, ..Default::default() };
    let mut optimizer = Sgd::with_groups(vec![
        Group { parameters: vec![problem.a.clone()], options: slow },
        Group { parameters: vec![problem.b.clone()], options: SgdOptions { lr: 0.01, ..slow } },
    ])
    .unwrap();
    problem.train(&mut optimizer, 50, |_| ());
    let expected = [
        -0.32203908679811216,
        0.819263073345105,
        -0.5522568738144624,
        0.22553043928303285,
        0.7024124344842806,
        -0.9104917394903729,
    ];
    near("groups", &problem.values(), &expected);

    let problem = Problem::new();
    let options = SgdOptions { lr: 0.05, momentum: 0.9, ..Default::default() };
    let mut optimizer = Sgd::new(problem.parameters(), options).unwrap();
    let mut schedule = StepLr::new(&optimizer, 10, 0.5).unwrap();
    problem.train(&mut optimizer, 50, |optimizer| schedule.step(optimizer).unwrap());
    let expected = [
        0.0008743323264892602,
        0.16016558719292467,
        0.08615303681314551,
        0.15232235841307062,
        -0.20790513125552113,
        -0.45737426693404204,
    ];
    near("steps", &problem.values(), &expected);

    let problem = Problem::new();
    let mut optimizer = Sgd::new(problem.parameters(), slow).unwrap();
    let mut schedule = CosineAnnealingLr::new_with(&optimizer, 40, 0.01).unwrap();
    problem.train(&mut optimizer, 50, |optimizer| schedule.step(optimizer).unwrap());
    let expected = [
        -0.01186736601383014,
        -0.44913385920301174,
        -0.01644371897441504,
        0.0885357913450965,
        0.1137509463110869,
        -0.1993815480013774,
    ];
    near("cosine", &problem.values(), &expected);
}

#[test]
fn clipping_is_pytorchs() {
    let clipped = |clip: &dyn Fn(&[Tensor])| {
        let problem = Problem::new();
        let mut optimizer =
            Sgd::new(problem.parameters(), SgdOptions { lr: 0.05, ..Default::default() }).unwrap();
        for _ in 0..50 {
            optimizer.zero_grad();
            problem.backward().unwrap();
            clip(&problem.parameters());
            optimizer.step().unwrap();
        }
        problem.values()
    };
    let by_norm = clipped(&|p| drop(clip_grad_norm_(p, 1.5).unwrap()));
    let expected = [
        0.025754026694020198,
        -0.6024265334022539,
        0.016082094870641758,
        0.15883625229477677,
        0.12330289386974445,
        -0.34730664621246055,
    ];
    near("norm", &by_norm, &expected);
    let by_value = clipped(&|p| clip_grad_value_(p, 0.5).unwrap());
    let expected = [
        0.06736676553022534,
        -0.7500000000000033,
        0.0421169094169723,
        1.7500000000000044,
        -0.122633539819423,
        -1.0001001159810414,
    ];
    near("value", &by_value, &expected);
}

#[test]
fn parameters_stay_leaves_and_half_precision_trains() {
    let w = Tensor::new([1.0f32, 2.0]).unwrap().to_dtype(DType::BF16).unwrap().requires_grad_(true).unwrap();
    let mut optimizer = Adam::new(vec![w.clone()], AdamOptions { lr: 0.5, ..Default::default() }).unwrap();
    w.mul(&w).unwrap().sum_all().unwrap().backward().unwrap();
    optimizer.step().unwrap();
    assert!(w.is_leaf() && w.requires_grad() && w.dtype() == DType::BF16);
    // Computed in f32 and rounded once.
    assert_eq!(w.to_vec_f64().unwrap(), [0.5, 1.5]);
    let state = optimizer.state_dict().unwrap();
    assert_eq!(state["state.0.exp_avg"].dtype(), DType::BF16);

    // In f16, `eps` would be 0 and the step of an element without gradient 0 / 0.
    let w = Tensor::new([1.0f32, 2.0]).unwrap().to_dtype(DType::F16).unwrap().requires_grad_(true).unwrap();
    let options =
        RmsPropOptions { lr: 0.5, alpha: 0.75, momentum: 0.9, centered: true, ..Default::default() };
    let mut optimizer = RmsProp::new(vec![w.clone()], options).unwrap();
    w.narrow(0, 1, 1).unwrap().sum_all().unwrap().backward().unwrap();
    optimizer.step().unwrap();
    // The second one's gradient is 1, its mean square 0.25 and its mean 0.25: 2 - 0.5 / sqrt(0.1875).
    assert_eq!(w.to_vec_f64().unwrap(), [1.0, 0.84521484375]);
    assert_eq!(optimizer.state_dict().unwrap()["state.0.grad_avg"].dtype(), DType::F16);
}

#[test]
fn a_memory_that_other_options_ask_for_is_missing() {
    let leaf = || Tensor::new(1.0f64).unwrap().requires_grad_(true).unwrap();
    let make = |options: RmsPropOptions| {
        let w = leaf();
        let mut optimizer = RmsProp::new(vec![w.clone()], options).unwrap();
        w.mul(2.0).unwrap().backward().unwrap();
        optimizer.step().unwrap();
        optimizer.state_dict().unwrap()
    };
    let mut plain = make(RmsPropOptions::default());
    assert!(!plain.contains_key("state.0.grad_avg"));
    // Options come with the state, so they say what it holds.
    let mut optimizer =
        RmsProp::new(vec![leaf()], RmsPropOptions { centered: true, ..Default::default() }).unwrap();
    optimizer.load_state_dict(&plain).unwrap();
    assert!(!optimizer.groups()[0].options.centered);
    plain.insert("group.0.centered".into(), Tensor::new(1.0f64).unwrap());
    let error = optimizer.load_state_dict(&plain).unwrap_err().to_string();
    assert!(error.contains("1 missing: state.0.grad_avg"), "{error}");
}

#[test]
fn wrong_use_is_named() {
    let leaf = || Tensor::new(1.0f32).unwrap().requires_grad_(true).unwrap();
    let message =
        |parameters: Vec<Tensor>, options: SgdOptions| Sgd::new(parameters, options).unwrap_err().to_string();
    let some = SgdOptions::default();
    for (got, part) in [
        (message(vec![], some), "at least one tensor"),
        (message(vec![Tensor::new(1.0f32).unwrap()], some), "got one that does not require grad"),
        (message(vec![leaf().mul(2.0).unwrap()], some), "got the result of an op"),
        (
            message(vec![leaf()], SgdOptions { lr: -1.0, ..some }),
            "Sgd: expected `lr` to be a finite number of 0 or more, got -1",
        ),
        (message(vec![leaf()], SgdOptions { nesterov: true, ..some }), "momentum 0 and dampening 0"),
        (
            Adam::new(vec![leaf()], AdamOptions { beta2: 1.0, ..Default::default() })
                .unwrap_err()
                .to_string(),
            "`beta2`",
        ),
        (clip_grad_norm_(&[leaf()], f64::NAN).unwrap_err().to_string(), "`max_norm`"),
    ] {
        assert!(got.contains(part), "{got}");
    }
    let twice = leaf();
    assert!(message(vec![twice.clone(), twice], some).contains("parameter 1 twice"));

    let mut optimizer = Adam::new(vec![leaf()], AdamOptions::default()).unwrap();
    let mut state = optimizer.state_dict().unwrap();
    state.remove("group.0.eps");
    state.insert("state.0.step".into(), Tensor::new(1i64).unwrap());
    state.insert("state.0.exp_avg".into(), Tensor::new([1.0f32]).unwrap());
    state.insert("other".into(), Tensor::new(1i64).unwrap());
    let error = optimizer.load_state_dict(&state).unwrap_err().to_string();
    for part in [
        "2 missing: group.0.eps, state.0.exp_avg_sq",
        "1 unexpected: other",
        "state.0.exp_avg (expected [], got [1])",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

/// The values of `torch.optim.AdamW([w])` and `candle_nn::AdamW` with their defaults.
#[test]
fn adamw_decays_weights_by_default() {
    let w = Tensor::new([1.0f64, -2.0]).unwrap().requires_grad_(true).unwrap();
    let mut optimizer = AdamW::new(vec![w.clone()], AdamWOptions::default()).unwrap();
    for _ in 0..3 {
        optimizer.zero_grad();
        w.square().unwrap().sum_all().unwrap().backward().unwrap();
        optimizer.step().unwrap();
    }
    let expected = [0.9969701273303954, -1.9969400794574153];
    for (got, expected) in w.detach().to_vec::<f64>().unwrap().into_iter().zip(expected) {
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
    }
    assert_eq!(optimizer.groups()[0].options, AdamWOptions::default());
}
