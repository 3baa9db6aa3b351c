//! The connectionist temporal classification loss.
//!
//! The expected values are those of `torch.nn.functional.ctc_loss` of the logits' `log_softmax`, and of the gradients of
//! `(losses * torch.arange(1, batch + 1)).sum()` by the logits.

use super::INF;
use keyway::Result;
use keyway::autograd::gradcheck::{Tolerance, gradcheck};
use keyway::nn::{CtcLoss, CtcLossOptions, Reduction};
use keyway::prelude::*;

struct Case {
    name: &'static str,
    sizes: [usize; 3],
    /// Labels and their shape.
    targets: (&'static [i64], &'static [usize]),
    input_lengths: &'static [usize],
    target_lengths: &'static [usize],
    blank: usize,
    zero_infinity: bool,
    losses: &'static [f64],
    mean: f64,
    gradient: &'static [f64],
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "padded",
            sizes: [4, 2, 3],
            targets: (&[1, 2, 2, 1], &[2, 2]),
            input_lengths: &[4, 3],
            target_lengths: &[2, 1],
            blank: 0,
            zero_infinity: false,
            losses: &[1.2399076394888968, 1.8713471681941238],
            mean: 1.245650493969286,
            gradient: &[
                0.14298996116328616,
                -0.20163379861269995,
                0.05864383744941378,
                -0.3141403783881967,
                0.40873250278184287,
                -0.09459212439364617,
                0.1022353551545391,
                -0.3407291838841849,
                0.23849382872964578,
                -0.14885834979277454,
                0.3871969624850447,
                -0.23833861269227014,
                0.08896806739707087,
                0.1817302028235617,
                -0.2706982702206326,
                -0.8856645270876167,
                0.8328212667127979,
                0.05284326037481885,
                -0.15040940053411023,
                0.1929123092048155,
                -0.04250290867070529,
                0.0,
                0.0,
                0.0,
            ],
        },
        Case {
            name: "flat repeated",
            sizes: [5, 2, 3],
            targets: (&[1, 1, 2], &[3]),
            input_lengths: &[5, 4],
            target_lengths: &[2, 1],
            blank: 0,
            zero_infinity: false,
            losses: &[2.8566922238372805, 2.658024446431438],
            mean: 2.0431852791750393,
            gradient: &[
                -0.027772851989435084,
                -0.03087098545997865,
                0.05864383744941373,
                -1.045176163474205,
                0.40873250278184264,
                0.6364436606923624,
                -0.031051457053916803,
                -0.3849420983870154,
                0.4159935554409322,
                -0.038754185302056696,
                0.3871969624850444,
                -0.3484427771829878,
                -0.27178923140343675,
                -0.3985142817043837,
                0.6703035131078204,
                -0.31031080668835165,
                0.832821266712798,
                -0.5225104600244462,
                -0.13185494067337403,
                0.07227918335729944,
                0.059575757316074576,
                -0.2943428791910015,
                0.4047477621670094,
                -0.11040488297600792,
                0.126992412903187,
                -0.5292925983481034,
                0.4023001854449164,
                0.0,
                0.0,
                0.0,
            ],
        },
        Case {
            name: "blank last",
            sizes: [4, 1, 3],
            targets: (&[0, 0], &[1, 2]),
            input_lengths: &[4],
            target_lengths: &[2],
            blank: 2,
            zero_infinity: false,
            losses: &[1.364770238826195],
            mean: 0.6823851194130975,
            gradient: &[
                -0.24372100919935433,
                0.1943374534184958,
                0.049383555780858526,
                0.00252838818117378,
                0.20436625139092135,
                -0.20689463957209514,
                -0.0971171655368339,
                0.4137279402289378,
                -0.3166107746921039,
                -0.2330950149745783,
                0.19359848124252224,
                0.03949653373205606,
            ],
        },
        Case {
            name: "empty target",
            sizes: [3, 2, 2],
            targets: (&[1, 1], &[2, 1]),
            input_lengths: &[3, 2],
            target_lengths: &[0, 1],
            blank: 0,
            zero_infinity: false,
            losses: &[2.0272464647050725, 0.19911687970701153],
            mean: 1.113181672206042,
            gradient: &[
                -0.20644412938450657,
                0.20644412938450657,
                0.16779011498668156,
                -0.16779011498668156,
                -0.7651642110991969,
                0.7651642110991969,
                0.3121692889953645,
                -0.3121692889953645,
                -0.29329810784497795,
                0.29329810784497795,
                0.0,
                0.0,
            ],
        },
        Case {
            name: "infeasible zero",
            sizes: [3, 2, 3],
            targets: (&[1, 1, 2], &[3]),
            input_lengths: &[2, 3],
            target_lengths: &[2, 1],
            blank: 0,
            zero_infinity: true,
            losses: &[0.0, 1.8713471681941238],
            mean: 0.9356735840970619,
            gradient: &[
                0.0,
                0.0,
                0.0,
                -0.3141403783881967,
                0.40873250278184287,
                -0.09459212439364617,
                0.0,
                0.0,
                0.0,
                -0.14885834979277454,
                0.3871969624850447,
                -0.23833861269227014,
                0.0,
                0.0,
                0.0,
                -0.8856645270876167,
                0.8328212667127979,
                0.05284326037481885,
            ],
        },
        Case {
            name: "infeasible",
            sizes: [3, 2, 3],
            targets: (&[1, 1, 2], &[3]),
            input_lengths: &[2, 3],
            target_lengths: &[2, 1],
            blank: 0,
            zero_infinity: false,
            losses: &[INF, 1.8713471681941238],
            mean: INF,
            gradient: &[
                f64::NAN,
                f64::NAN,
                f64::NAN,
                -0.3141403783881967,
                0.40873250278184287,
                -0.09459212439364617,
                f64::NAN,
                f64::NAN,
                f64::NAN,
                -0.14885834979277454,
                0.3871969624850447,
                -0.23833861269227014,
                0.0,
                0.0,
                0.0,
                -0.8856645270876167,
                0.8328212667127979,
                0.05284326037481885,
            ],
        },
    ]
}

/// The logits of the expected values.
fn logits(sizes: &[usize]) -> Tensor {
    let value = |i: usize| 2.0 * (0.7 * i as f64 + 2.6).sin();
    Tensor::from_vec((0..sizes.iter().product()).map(value).collect::<Vec<f64>>(), sizes).unwrap()
}

#[track_caller]
fn near(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        let close = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(close, "{what}, element {i}: {a}, expected {b}");
    }
}

#[test]
fn losses_and_gradients_are_as_in_pytorch() -> Result<()> {
    for case in cases() {
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-6)] {
            let x = logits(&case.sizes).to_dtype(dtype)?.requires_grad_(true)?;
            let targets = Tensor::from_slice(case.targets.0, case.targets.1)?;
            let with =
                |reduction| CtcLoss { blank: case.blank, zero_infinity: case.zero_infinity, reduction };
            let loss = |reduction| {
                with(reduction).forward(
                    &x.log_softmax(-1)?,
                    &targets,
                    case.input_lengths,
                    case.target_lengths,
                )
            };
            let losses = loss(Reduction::None)?;
            near(&losses.to_vec_f64()?, case.losses, tolerance, case.name);
            near(&loss(Reduction::Mean)?.to_vec_f64()?, &[case.mean], tolerance, case.name);
            near(&loss(Reduction::Sum)?.to_vec_f64()?, &[case.losses.iter().sum()], tolerance, case.name);
            let weights =
                Tensor::from_vec((1..=case.sizes[1]).map(|i| i as f64).collect::<Vec<f64>>(), case.sizes[1])?;
            losses.mul(&weights.to_dtype(dtype)?)?.sum_all()?.backward()?;
            let gradient = x.grad().expect("a gradient").to_vec_f64()?;
            near(&gradient, case.gradient, tolerance, case.name);
        }
    }
    Ok(())
}

#[test]
fn gradients_are_those_of_differences() -> Result<()> {
    let targets = Tensor::new([[1i64, 1, 2], [2, 0, 0]])?;
    let x = logits(&[6, 2, 4]).requires_grad_(true)?;
    let run = |inputs: &[Tensor]| {
        let options = CtcLossOptions { reduction: Reduction::None, ..Default::default() };
        Ok(vec![inputs[0].ctc_loss_with(&targets, &[6, 4], &[3, 1], options)?])
    };
    assert!(gradcheck(&run, &[x], Tolerance::default())?.is_none());
    Ok(())
}

#[test]
fn one_sequence_needs_no_batch() -> Result<()> {
    let x = logits(&[5, 1, 3]).log_softmax(-1)?;
    let targets = Tensor::new([1i64, 2])?;
    let batched = x.ctc_loss(&targets, &[5], &[2])?.item::<f64>()?;
    let alone = x.squeeze(1)?;
    assert_eq!(alone.ctc_loss(&targets, &[5], &[2])?.item::<f64>()?, batched);
    let options = CtcLossOptions { reduction: Reduction::None, ..Default::default() };
    let loss = alone.ctc_loss_with(&targets, &[5], &[2], options)?;
    assert_eq!(loss.shape(), [0usize; 0]);
    assert!((loss.item::<f64>()? - 2.0 * batched).abs() < 1e-12);
    Ok(())
}

#[test]
fn impossible_probabilities_and_empty_batches() -> Result<()> {
    // A class without any probability, which the target needs.
    let x = Tensor::new([[[0.0f64, f64::NEG_INFINITY]], [[0.0, f64::NEG_INFINITY]]])?;
    assert_eq!(x.ctc_loss(&Tensor::new([1i64])?, &[2], &[1])?.item::<f64>()?, INF);
    assert_eq!(x.ctc_loss(&Tensor::new([[0i64; 0]; 1])?, &[2], &[0])?.item::<f64>()?, 0.0);
    let none = Tensor::zeros((3, 0, 2))?.ctc_loss_with(
        &Tensor::zeros_with((0, 4), DType::I64)?,
        &[],
        &[],
        CtcLossOptions { reduction: Reduction::None, ..Default::default() },
    )?;
    assert_eq!(none.shape(), [0]);
    Ok(())
}

#[test]
fn wrong_input_is_named_with_its_sequence() -> Result<()> {
    let x = logits(&[4, 2, 3]);
    let targets = Tensor::new([[1i64, 2], [2, 7]])?;
    let message = |targets: &Tensor, inputs: &[usize], labels: &[usize]| {
        x.ctc_loss(targets, inputs, labels).unwrap_err().to_string()
    };
    for (message, parts) in [
        (message(&targets, &[4, 4], &[2, 2]), ["targets", "0..3", "7 in sequence 1"]),
        (message(&targets, &[4, 5], &[2, 1]), ["input_lengths", "from 0 to 4", "5 for sequence 1"]),
        (message(&targets, &[4, 4], &[3, 1]), ["target_lengths", "from 0 to 2", "3 for sequence 0"]),
        (message(&targets, &[4], &[2, 1]), ["input_lengths", "each of 2 sequences", "1 lengths"]),
        (message(&Tensor::new([1i64])?, &[4, 4], &[1, 1]), ["targets", "[2] as the sum", "[1]"]),
        (message(&Tensor::new([1.0f32, 2.0])?, &[4, 4], &[1, 1]), ["targets", "integers", "f32"]),
    ] {
        for part in parts {
            assert!(message.contains(part), "`{part}` in: {message}");
        }
    }
    let options = CtcLossOptions { blank: 3, ..Default::default() };
    let error = x.ctc_loss_with(&targets, &[4, 4], &[2, 1], options).unwrap_err().to_string();
    assert!(error.contains("blank") && error.contains("0..3"), "{error}");
    let options = CtcLossOptions { reduction: Reduction::BatchMean, ..Default::default() };
    assert!(x.ctc_loss_with(&targets, &[4, 4], &[2, 1], options).is_err());
    Ok(())
}
