//! Losses of scores and distributions.

use crate::{A, COUNTS, Input, P, RATES, SCORES, SIGNS, X, Y, check, near, row, tensor};
use keyway::nn::{self, Reduction};
use keyway::prelude::*;

#[test]
fn margin_ranking() {
    let target = row(&SIGNS);
    check(
        "ranking",
        &[X, Y],
        |t, reduction| t[0].margin_ranking_loss_with(&t[1], &target, 0.0, reduction),
        &[2.0, 0.5, 0.0, 2.0, 3.0, 1.25],
        &[&[-1.0, 2.0, -0.0, 4.0, 5.0, -6.0], &[1.0, -2.0, 0.0, -4.0, -5.0, 6.0]],
    );
    check(
        "ranking with a margin",
        &[X, Y],
        |t, reduction| {
            nn::MarginRankingLoss::new().margin(1.25).reduction(reduction).forward(&t[0], &t[1], &target)
        },
        &[3.25, 1.75, 1.25, 3.25, 4.25, 2.5],
        &[&[-1.0, 2.0, -3.0, 4.0, 5.0, -6.0], &[1.0, -2.0, 3.0, -4.0, -5.0, 6.0]],
    );
    let column = tensor((&[1.0, -1.0], &[2, 1]));
    let made = tensor(X).margin_ranking_loss_with(&tensor(Y), &column, 0.0, Reduction::None).unwrap();
    assert_eq!(made.shape(), [2, 6]);
}

#[test]
fn hinge_embedding() {
    let target = row(&SIGNS);
    check(
        "hinge",
        &[X],
        |t, reduction| t[0].hinge_embedding_loss_with(&target, 1.0, reduction),
        &[-1.5, 0.75, 0.0, 0.0, 0.0, -0.5],
        &[&[1.0, -2.0, 3.0, 0.0, 0.0, 6.0]],
    );
    let target = row(&[1.0, -1.0, 0.0, 0.0, -1.0, 1.0]);
    check(
        "hinge with a margin",
        &[X],
        |t, reduction| nn::HingeEmbeddingLoss::new().margin(2.0).reduction(reduction).forward(&t[0], &target),
        &[-1.5, 1.75, 2.0, 3.0, 1.0, -0.5],
        &[&[1.0, -2.0, 0.0, 4.0, -5.0, 6.0]],
    );
}

/// PyTorch's loss overflows at -800, and its gradient is NaN; expected are the exact values.
#[test]
fn soft_margin() {
    const FAR: Input = (&[-1.5, 0.25, 0.0, 3.0, 1.0, -0.5, 30.0, -30.0, -800.0, 800.0], &[10]);
    let target = row(&[&SIGNS[..], &[1.0; 4]].concat());
    check(
        "soft margin",
        &[FAR],
        |t, reduction| t[0].soft_margin_loss_with(&target, reduction),
        &[
            1.7014132779827524,
            0.8259394198788436,
            0.6931471805599453,
            3.048587351573742,
            1.3132616875182228,
            0.9740769841801067,
            9.357622968839737e-14,
            30.000000000000092,
            800.0,
            0.0,
        ],
        &[&[
            -0.8175744761936437,
            1.1243530017715961,
            -1.5,
            3.810296507289733,
            3.6552928931500244,
            -3.734755987211128,
            -6.55033607818751e-13,
            -7.999999999999251,
            -9.0,
            -0.0,
        ]],
    );
}

#[test]
fn multi_margin() {
    let target = Tensor::new([3i64, 0, 1]).unwrap();
    check(
        "multi margin",
        &[SCORES],
        |t, reduction| t[0].multi_margin_loss_with(&target, 1, 1.0, None, reduction),
        &[0.32499999999999996, 0.375, 0.75],
        &[&[0.25, 0.25, 0.25, -0.75, -0.5, 0.0, 0.0, 0.5, 0.75, -1.5, 0.75, 0.0]],
    );
    let weight = row(&[0.5, 1.5, 2.0, 1.0]);
    let loss = nn::MultiMarginLoss::new().p(2).margin(0.75).weight(weight.clone());
    check(
        "multi margin with a weight",
        &[SCORES],
        |t, reduction| loss.clone().reduction(reduction).forward(&t[0], &target),
        &[0.03687499999999999, 0.1953125, 1.359375],
        &[&[
            0.02499999999999998,
            0.07499999999999998,
            0.175,
            -0.27499999999999997,
            -0.625,
            0.0,
            0.0,
            0.625,
            1.6875,
            -5.625,
            3.9375,
            0.0,
        ]],
    );
    let one = Tensor::new(2i64).unwrap();
    check(
        "one sample",
        &[(&[1.5, -0.5, 0.5, 2.0], &[4])],
        |t, reduction| t[0].multi_margin_loss_with(&one, 1, 1.0, None, reduction),
        &[1.125],
        &[&[0.25, 0.0, -0.5, 0.25]],
    );
    let scalar = row(&[1.5, -0.5, 0.5, 2.0]);
    near(
        &scalar.multi_margin_loss_with(&one, 1, 1.0, Some(&weight), Reduction::None).unwrap(),
        &[2.25],
        "weighted",
    );
    let narrow = target.to_dtype(DType::I32).unwrap();
    near(&tensor(SCORES).multi_margin_loss(&narrow).unwrap(), &[1.45 / 3.0], "i32 classes");
}

/// At a target of 0 PyTorch's gradient of the targets is NaN with `full`; expected is the gradient without that part.
#[test]
fn poisson_nll() {
    check(
        "poisson",
        &[X, COUNTS],
        |t, reduction| t[0].poisson_nll_loss_with(&t[1], true, false, 1e-8, reduction),
        &[
            0.22313016014842982,
            1.0340254166877414,
            1.0,
            12.585536923187668,
            2.218281828459045,
            4.106530659712633,
        ],
        &[
            &[
                0.22313016014842982,
                0.5680508333754828,
                -6.0,
                70.34214769275067,
                11.091409142295225,
                -38.3608160417242,
            ],
            &[1.5, -0.5, -0.0, -12.0, -5.0, 3.0],
        ],
    );
    check(
        "poisson, full",
        &[X, COUNTS],
        |t, reduction| nn::PoissonNllLoss::new().full(true).reduction(reduction).forward(&t[0], &t[1]),
        &[
            0.22313016014842982,
            1.0340254166877414,
            2.764081543543057,
            13.753347652014806,
            2.218281828459045,
            12.619795310832156,
        ],
        &[
            &[
                0.22313016014842982,
                0.5680508333754828,
                -6.0,
                70.34214769275067,
                11.091409142295225,
                -38.3608160417242,
            ],
            &[1.5, -0.5, 3.795836866004329, -7.53483707250338, -5.0, 15.104032322903308],
        ],
    );
    check(
        "poisson of rates",
        &[RATES, COUNTS],
        |t, reduction| t[0].poisson_nll_loss_with(&t[1], false, true, 1e-3, reduction),
        &[
            0.5,
            1.3063529443984037,
            6.160988563094116,
            1.420446812681563,
            0.9995002498334583,
            2.807454341993836,
        ],
        &[
            &[
                1.0,
                1.0004997501249375,
                -32.85657370517928,
                0.6677774075308229,
                2.5024975024975022,
                -4.497375656085978,
            ],
            &[
                0.6911491778972723,
                -1.3872941112031927,
                7.942743885555388,
                0.0693806616637005,
                -0.004997501665417116,
                3.78476634365272,
            ],
        ],
    );
    // Integers as targets.
    let counts = Tensor::new([0i64, 1, 3]).unwrap();
    let made = row(&[-1.5, 0.25, 0.0]).poisson_nll_loss_with(&counts, true, true, 1e-8, Reduction::None);
    near(&made.unwrap(), &[0.22313016014842982, 1.0340254166877414, 2.764081543543057], "integers");
}

#[test]
fn gaussian_nll() {
    const VAR: Input = (&[0.5, 2.0, 1e-9, 0.0, 1.0, 4.0], &[6]);
    check(
        "gaussian",
        &[X, Y, VAR],
        |t, reduction| t[0].gaussian_nll_loss_with(&t[1], &t[2], false, 1e-6, reduction),
        &[
            3.6534264097200273,
            0.40907359027997264,
            -6.907755278982137,
            1999993.092244721,
            4.5,
            0.8884596805599453,
        ],
        &[
            &[-4.0, 0.5, 0.0, 8000000.0, 15.0, -1.875],
            &[4.0, -0.5, -0.0, -8000000.0, -15.0, 1.875],
            &[-7.0, 0.4375, 1500000.0, -7999998000000.0, -20.0, 0.45703125],
        ],
    );
    check(
        "gaussian, full",
        &[A, P, (&[0.5, 1.0, 2.0, 0.0], &[4])],
        |t, reduction| {
            nn::GaussianNllLoss::new().full(true).eps(0.75).reduction(reduction).forward(&t[0], &t[1], &t[2])
        },
        &[
            0.8017641636454489,
            0.8017641636454489,
            0.8017641636454489,
            1.4189385332046727,
            0.9389385332046727,
            1.0439385332046727,
            1.2655121234846454,
            1.2655121234846454,
            1.2655121234846454,
            3.441764163645449,
            1.201764163645449,
            11.441764163645448,
        ],
        &[
            &[
                0.2666666666666666,
                -0.5333333333333332,
                -0.7999999999999998,
                4.0,
                -0.9999999999999999,
                -2.9999999999999996,
                0.0,
                0.0,
                0.0,
                26.666666666666668,
                11.733333333333334,
                -64.0,
            ],
            &[
                -0.2666666666666666,
                0.5333333333333332,
                0.7999999999999998,
                -4.0,
                0.9999999999999999,
                2.9999999999999996,
                -0.0,
                -0.0,
                -0.0,
                -26.666666666666668,
                -11.733333333333334,
                64.0,
            ],
            &[3.7866666666666666, 4.65, 6.0, -190.48],
        ],
    );
    check(
        "gaussian, broadcast",
        &[A, P, (&[0.5, 1.0, 2.0], &[1, 3])],
        |t, reduction| t[0].gaussian_nll_loss_with(&t[1], &t[2], false, 1e-6, reduction),
        &[
            -0.30657359027997266,
            0.01999999999999999,
            0.35657359027997265,
            0.6534264097200273,
            0.019999999999999997,
            0.40907359027997264,
            -0.34657359027997264,
            0.0,
            0.34657359027997264,
            3.6534264097200273,
            0.32000000000000006,
            4.346573590279973,
        ],
        &[
            &[
                0.39999999999999997,
                -0.3999999999999999,
                -0.29999999999999993,
                8.0,
                -0.9999999999999999,
                -1.4999999999999998,
                0.0,
                0.0,
                0.0,
                40.0,
                8.8,
                -24.0,
            ],
            &[
                -0.39999999999999997,
                0.3999999999999999,
                0.29999999999999993,
                -8.0,
                0.9999999999999999,
                1.4999999999999998,
                -0.0,
                -0.0,
                -0.0,
                -40.0,
                -8.8,
                24.0,
            ],
            &[-66.08, 9.34, -16.7025],
        ],
    );
}
