//! Compares each schedule with PyTorch 2.15, on two groups whose rates are 1 and 0.3.

use super::*;
use crate::Tensor;
use crate::nn::StateDict;

/// An optimizer that has only rates.
#[derive(Debug)]
struct Rates(Vec<f64>);

impl Optimizer for Rates {
    fn step(&mut self) -> Result<()> {
        Ok(())
    }

    fn parameters(&self) -> Vec<Tensor> {
        Vec::new()
    }

    fn learning_rates(&self) -> Vec<f64> {
        self.0.clone()
    }

    fn set_learning_rates(&mut self, rates: &[f64]) -> Result<()> {
        rates.iter().try_for_each(|&rate| crate::optim::group::require_not_negative("Rates", "lr", rate))?;
        self.0 = rates.to_vec();
        Ok(())
    }

    fn state_dict(&self) -> Result<StateDict> {
        Ok(StateDict::new())
    }

    fn load_state_dict(&mut self, _: &StateDict) -> Result<()> {
        Ok(())
    }
}

fn two() -> Rates {
    Rates(vec![1.0, 0.3])
}

fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-12 * expected.abs().max(1e-3)
}

/// Asserts the rates of the first group, epoch by epoch and by index in any order; those of the second are `share` of them,
/// if it is given.
fn follows(
    make: impl Fn(&mut Rates) -> Result<Box<dyn LrScheduler>>,
    expected: &[f64],
    share: impl Fn(f64) -> f64,
) {
    let mut optimizer = two();
    let mut schedule = make(&mut optimizer).unwrap();
    for (epoch, &rate) in expected.iter().enumerate() {
        assert_eq!(schedule.epoch(), epoch as u64);
        let [first, second] = optimizer.0[..] else { panic!("two groups") };
        assert!(
            near(first, rate) && near(second, share(rate)),
            "epoch {epoch}: {first} {second}, not {rate}"
        );
        if epoch + 1 < expected.len() {
            schedule.step(&mut optimizer).unwrap();
        }
    }
    for epoch in (0..expected.len()).rev().step_by(2) {
        schedule.seek(epoch as u64, &mut optimizer).unwrap();
        assert!(near(optimizer.0[0], expected[epoch]), "epoch {epoch} by its number");
    }
}

#[test]
fn rates_that_are_multiplied() {
    let tenths = |rate: f64| rate * 0.3;
    let expected = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.125, 0.125];
    // In any order, and one of them twice.
    follows(|o| Ok(Box::new(MultiStepLr::new(o, &[7, 3, 7], 0.5)?)), &expected, tenths);
    let expected = [1.0, 0.9, 0.81, 0.729, 0.6561, 0.59049];
    follows(|o| Ok(Box::new(ExponentialLr::new(o, 0.9)?)), &expected, tenths);
    let expected = [0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.0, 1.0];
    follows(|o| Ok(Box::new(LinearLr::new(o, 0.25, 1.0, 5)?)), &expected, tenths);
    follows(|o| Ok(Box::new(LinearLr::new(o, 0.25, 0.5, 0)?)), &[0.5, 0.5], tenths);
    let expected = [
        1.0,
        0.8184875533567997,
        0.6495190528383289,
        0.49410588440130926,
        0.3535533905932738,
        0.22963966338592298,
        0.125,
        0.04419417382415923,
        0.0,
        0.0,
    ];
    follows(|o| Ok(Box::new(PolynomialLr::new(o, 8, 1.5)?)), &expected, tenths);
    follows(|o| Ok(Box::new(LambdaLr::new(o, |epoch| 0.5 + epoch as f64)?)), &[0.5, 1.5, 2.5], tenths);
}

#[test]
fn cosines_with_restarts() {
    let expected = [
        1.0,
        0.7525,
        0.2575,
        1.0,
        0.9336825748732972,
        0.7525,
        0.505,
        0.2575,
        0.07631742512670284,
        1.0,
        0.9831332840130887,
    ];
    let second = |rate: f64| 0.01 + (rate - 0.01) * 0.29 / 0.99;
    follows(|o| Ok(Box::new(CosineAnnealingWarmRestarts::new_with(o, 3, 2, 0.01)?)), &expected, second);
    let expected = [1.0, 0.7525, 0.2575, 1.0, 0.7525, 0.2575, 1.0];
    follows(|o| Ok(Box::new(CosineAnnealingWarmRestarts::new_with(o, 3, 1, 0.01)?)), &expected, second);
    // Late enough that periods of 2^63 have passed.
    let mut optimizer = two();
    let mut schedule = CosineAnnealingWarmRestarts::new_with(&optimizer, 1, 2, 0.0).unwrap();
    schedule.seek(u64::MAX, &mut optimizer).unwrap();
    assert!((0.0..=1.0).contains(&optimizer.0[0]));
}

#[test]
fn one_cycle_of_two_phases_and_of_three() {
    let same = |rate: f64| rate;
    let expected = [
        0.08,
        0.6995793084391662,
        1.7585703182442574,
        1.9888308709018234,
        1.8660259396828234,
        1.623491307899526,
        1.2947579953902066,
        0.9252742053339501,
        0.5661219964173985,
        0.2669550603776612,
        0.06913397485079044,
        8e-06,
        8e-06,
    ];
    let options = OneCycleLrOptions::default();
    follows(|o| Ok(Box::new(OneCycleLr::new(o, 2.0, 12, options)?)), &expected, same);
    let expected = [
        0.2,
        0.6736842105263157,
        1.1473684210526314,
        1.621052631578947,
        1.9052631578947372,
        1.4315789473684215,
        0.9578947368421058,
        0.4842105263157901,
        0.17670588235294127,
        0.11847058823529417,
        0.06023529411764711,
        0.002,
    ];
    let three = OneCycleLrOptions {
        pct_start: 0.4,
        anneal: Anneal::Linear,
        div_factor: 10.0,
        final_div_factor: 100.0,
        three_phase: true,
    };
    follows(|o| Ok(Box::new(OneCycleLr::new(o, 2.0, 12, three)?)), &expected, same);
    follows(|o| Ok(Box::new(OneCycleLr::new(o, 2.0, 1, options)?)), &[8e-06], same);
    let falling = OneCycleLrOptions { pct_start: 0.0, ..options };
    let expected = [1.7071079527594226, 1.000004, 0.2929000472405773, 8e-06];
    follows(|o| Ok(Box::new(OneCycleLr::new(o, 2.0, 4, falling)?)), &expected, same);
    // A rise that ends with the first step.
    let short = OneCycleLrOptions { pct_start: 0.25, ..options };
    let mut optimizer = two();
    let mut schedule = OneCycleLr::new(&mut optimizer, 2.0, 4, short).unwrap();
    assert_eq!(optimizer.0, [2.0, 2.0]);
    let text = schedule.seek(5, &mut optimizer).unwrap_err().to_string();
    assert!(text.contains("OneCycleLr") && text.contains("step 5 of 4"), "{text}");
    assert_eq!((optimizer.0, schedule.epoch()), (vec![2.0, 2.0], 0));
}

#[test]
fn a_warm_up_and_what_follows_it() {
    let expected = [0.1, 0.325, 0.55, 0.775, 1.0, 1.0, 0.5, 0.5, 0.25];
    let make = |o: &mut Rates| -> Result<Box<dyn LrScheduler>> {
        let then = StepLr::new(o, 2, 0.5)?;
        Ok(Box::new(WarmupLr::new(o, 0.1, 4, then)?))
    };
    follows(make, &expected, |rate| rate * 0.3);
    // Without a warm-up it is the other schedule.
    let mut optimizer = two();
    let then = StepLr::new(&optimizer, 1, 0.5).unwrap();
    let mut schedule = WarmupLr::new(&mut optimizer, 0.1, 0, then).unwrap();
    schedule.step(&mut optimizer).unwrap();
    assert_eq!(optimizer.0, [0.5, 0.15]);
}

/// The rates of the first group after each metric, and the final state.
fn after(options: ReduceLrOnPlateauOptions) -> (Vec<f64>, PlateauState) {
    let mut numbers = vec![5.0, 4.0, 4.0, 4.0, 4.0, 3.99, 3.99, 3.99, f64::NAN, 4.0];
    numbers.extend([2.0; 10]);
    let (mut optimizer, mut schedule) = (two(), ReduceLrOnPlateau::new(options.clone()).unwrap());
    let mut rates = Vec::new();
    for number in numbers {
        // A restored schedule continues like the saved one.
        let mut again = ReduceLrOnPlateau::new(options.clone()).unwrap();
        again.set_state(schedule.state());
        schedule = again;
        schedule.step(number, &mut optimizer).unwrap();
        rates.push(optimizer.0[0]);
    }
    (rates, schedule.state())
}

#[test]
fn rates_fall_on_a_plateau() {
    let options = ReduceLrOnPlateauOptions {
        patience: 2,
        factor: 0.5,
        cooldown: 2,
        ..ReduceLrOnPlateauOptions::default()
    };
    let (rates, state) = after(options);
    let counts = [(1.0, 4), (0.5, 5), (0.25, 5), (0.125, 5), (0.0625, 1)];
    let expected: Vec<f64> = counts.iter().flat_map(|&(rate, count)| vec![rate; count]).collect();
    assert_eq!(rates, expected);
    assert_eq!(state, PlateauState { best: 2.0, bad_epochs: 0, cooldown: 2 });

    let options = ReduceLrOnPlateauOptions {
        mode: PlateauMode::Max,
        patience: 0,
        threshold: Threshold::Absolute(0.5),
        min_lr: 0.005,
        ..ReduceLrOnPlateauOptions::default()
    };
    let (rates, state) = after(options);
    assert!(near(rates[2], 0.01) && rates[3..].iter().all(|&rate| rate == 0.005), "{rates:?}");
    assert_eq!(state, PlateauState { best: 5.0, bad_epochs: 0, cooldown: 0 });

    let options = ReduceLrOnPlateauOptions {
        patience: 1,
        threshold: Threshold::Relative(0.1),
        ..ReduceLrOnPlateauOptions::default()
    };
    let (rates, state) = after(options);
    let powers = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8];
    // A reduction to 1e-9 would be one by less than `eps`.
    assert!(
        rates.iter().zip(powers).all(|(&rate, n)| (rate / 0.1f64.powi(n) - 1.0).abs() < 1e-9),
        "{rates:?}"
    );
    assert_eq!((state.best, state.bad_epochs), (2.0, 1));
}

#[test]
fn a_first_number_counts_whatever_the_threshold() {
    let options = ReduceLrOnPlateauOptions {
        threshold: Threshold::Relative(1.0),
        ..ReduceLrOnPlateauOptions::default()
    };
    let mut schedule = ReduceLrOnPlateau::new(options).unwrap();
    schedule.step(3.0, &mut two()).unwrap();
    assert_eq!(schedule.state().best, 3.0);
}

#[test]
fn options_out_of_range_are_refused() {
    let mut o = two();
    let refused = |made: Result<()>, option: &str| {
        let text = made.unwrap_err().to_string();
        assert!(text.contains(&format!("`{option}`")), "{text}");
    };
    refused(MultiStepLr::new(&o, &[1], f64::NAN).map(drop), "gamma");
    refused(ExponentialLr::new(&o, -0.5).map(drop), "gamma");
    refused(LinearLr::new(&mut o, -0.1, 1.0, 5).map(drop), "start_factor");
    refused(LinearLr::new(&mut o, 0.1, f64::INFINITY, 5).map(drop), "end_factor");
    refused(PolynomialLr::new(&o, 0, 1.0).map(drop), "total_iters");
    refused(PolynomialLr::new(&o, 1, -1.0).map(drop), "power");
    refused(LambdaLr::new(&mut o, |_| f64::NAN).map(drop), "lr");
    refused(CosineAnnealingWarmRestarts::new(&o, 0).map(drop), "t_0");
    refused(CosineAnnealingWarmRestarts::new_with(&o, 1, 0, 0.0).map(drop), "t_mult");
    refused(CosineAnnealingWarmRestarts::new_with(&o, 1, 1, -1.0).map(drop), "eta_min");
    let options = OneCycleLrOptions::default();
    refused(OneCycleLr::new(&mut o, 1.0, 0, options).map(drop), "total_steps");
    refused(OneCycleLr::new(&mut o, 0.0, 1, options).map(drop), "max_lr");
    for pct_start in [-0.1, 1.1, f64::NAN] {
        let options = OneCycleLrOptions { pct_start, ..options };
        refused(OneCycleLr::new(&mut o, 1.0, 9, options).map(drop), "pct_start");
    }
    let options = OneCycleLrOptions { div_factor: 0.0, ..options };
    refused(OneCycleLr::new(&mut o, 1.0, 9, options).map(drop), "div_factor");
    let then = StepLr::new(&o, 1, 0.5).unwrap();
    refused(WarmupLr::new(&mut o, -1.0, 3, then).map(drop), "start_factor");
    let plateau = ReduceLrOnPlateauOptions::default();
    for (option, options) in [
        ("factor", ReduceLrOnPlateauOptions { factor: 1.0, ..plateau.clone() }),
        ("threshold", ReduceLrOnPlateauOptions { threshold: Threshold::Absolute(-1.0), ..plateau.clone() }),
        ("min_lr", ReduceLrOnPlateauOptions { min_lr: f64::NAN, ..plateau.clone() }),
        ("eps", ReduceLrOnPlateauOptions { eps: -1.0, ..plateau }),
    ] {
        refused(ReduceLrOnPlateau::new(options).map(drop), option);
    }
    assert_eq!(o.0, [1.0, 0.3], "what is refused changes no rate");
}
