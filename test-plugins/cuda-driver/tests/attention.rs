//! Attention at sizes that the suite's quick cases do not have: several tiles, heads that share a key, masks that
//! broadcast, no keys; forward and backward. The expected results are those of the CPU backend, and each result is
//! bit-identical every time.

mod support;

use keyway::nn::AttentionOptions;
use keyway::{DType, Device, Tensor};
use std::path::Path;
use support::{cuda, load, run, stand_in};

/// Kernels that must have run.
const FUSED: &[&str] = &[
    "attention_f32_64",
    "attention_f32_128",
    "attention_f32_256",
    "attention_f64_key_64",
    "attention_f64_query_128",
    "attention_f32_key_256",
    "attention_f16_statistics",
    "attention_f16_256",
    "attention_f16_cores_64",
    "attention_bf16_cores_128",
    "attention_bf16_query_cores_64",
    "attention_f16_key_cores_128",
    "attention_bf16_query_plain_64",
    "attention_f16_key_plain_128",
];
/// The kernels of the forward pass without a mask: on the chip with warpgroups, and on others.
const BY_GROUPS: &[&str] = &[
    "attention_f16_groups_64",
    "attention_f16_groups_128",
    "attention_bf16_groups_64",
    "attention_bf16_groups_128",
];
const BY_WARPS: &[&str] = &[
    "attention_f16_plain_64",
    "attention_f16_plain_128",
    "attention_bf16_plain_64",
    "attention_bf16_plain_128",
];
const GROUPS_CHIP: &str = "90";

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    if let Some(scenario) = support::scenario() {
        load();
        match scenario.as_str() {
            "long" => return long(),
            "refused" => return refused(),
            "groups" => {
                let dtypes = [DType::F16, DType::BF16];
                return dtypes.iter().for_each(|dtype| OF_GROUPS.iter().for_each(|case| case.check(*dtype)));
            }
            _ => {}
        }
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            CASES.iter().for_each(|case| case.check(dtype));
        }
    }
}

/// The kernels that a scenario launches on a chip, in an order of the threads that `seed` chooses.
#[track_caller]
fn launched(scenario: &str, seed: &str, chip: &str) -> Option<String> {
    let driver = stand_in()?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("attention-{scenario}-{seed}"));
    let machine = [
        ("KEYWAY_STAND_IN_SEED", seed),
        ("KEYWAY_STAND_IN_CHIP", chip),
        ("KEYWAY_STAND_IN_LAUNCHED", file.to_str().unwrap()),
    ];
    run(scenario, &driver, &machine);
    Some(std::fs::read_to_string(&file).unwrap())
}

/// Checks that all kernels of these names were launched, or none.
#[track_caller]
fn are_there(launched: &str, entries: &[&str], there: bool) {
    for entry in entries {
        assert_eq!(launched.contains(&format!("{entry} ")), there, "{entry}: {launched}");
    }
}

/// With threads in ascending, descending and random order.
#[test]
fn attention_and_its_gradients_are_as_on_the_cpu() {
    for (seed, chip) in [("3", GROUPS_CHIP), ("4", "80"), ("5", "100")] {
        let Some(launched) = launched("attention", seed, chip) else { return };
        are_there(&launched, FUSED, true);
        are_there(&launched, BY_WARPS, chip != GROUPS_CHIP);
        are_there(&launched, BY_GROUPS, chip == GROUPS_CHIP);
        // Neither scores nor weights are materialised.
        assert!(!launched.contains("softmax"), "{launched}");
    }
}

/// With the other orders of threads.
#[test]
fn attention_by_warpgroups_is_as_on_the_cpu_at_any_length() {
    for seed in ["1", "2"] {
        let Some(launched) = launched("groups", seed, GROUPS_CHIP) else { return };
        are_there(&launched, BY_GROUPS, true);
        are_there(&launched, BY_WARPS, false);
    }
}

/// A kernel whose launch requests more dynamic shared memory than the default opts in for it.
#[test]
fn memory_that_was_not_asked_for_is_refused() {
    let Some(driver) = stand_in() else { return };
    run("refused", &driver, &[("KEYWAY_STAND_IN_SKIP", "cuFuncSetAttribute")]);
}

fn refused() {
    let head = support::numbers(cuda(0), DType::F16, &[2, 20, 64]);
    let text = support::message(head.scaled_dot_product_attention(&head, &head));
    assert!(text.contains("cuLaunchKernel") && text.contains("invalid argument"), "{text}");
}

/// On a device whose memory holds only a quarter of the scores.
#[test]
fn long_sequences_keep_no_scores() {
    let Some(driver) = stand_in() else { return };
    run("long", &driver, &[("KEYWAY_STAND_IN_MEMORY", "4000000")]);
}

/// Two thousand queries and as many keys, forward and backward.
fn long() {
    let of = |nth: usize| {
        let made = Tensor::from_vec(numbers(&[2000, 8], nth), [2000, 8]).unwrap();
        made.to_dtype(DType::F32).unwrap().to_device(cuda(0)).unwrap().requires_grad_(true).unwrap()
    };
    let (q, k, v) = (of(0), of(1), of(2));
    let options = AttentionOptions { is_causal: true, ..Default::default() };
    let y = q.scaled_dot_product_attention_with(&k, &v, options).unwrap();
    // The first query attends only to the first key.
    let (row, first) = (y.detach().narrow(0, 0, 1).unwrap(), v.detach().narrow(0, 0, 1).unwrap());
    assert_eq!(row.to_vec_f64().unwrap(), first.to_vec_f64().unwrap());
    y.sum_all().unwrap().backward().unwrap();
    // Each query's weights sum to 1, so the sum of all gradients of the values is the number of queries.
    let all: f64 = v.grad().unwrap().to_vec_f64().unwrap().iter().sum();
    assert!((all - 16000.0).abs() < 1.0, "{all}");
}

/// A kind of mask.
#[derive(Clone, Copy, Debug)]
enum Mask {
    None,
    Causal,
    /// Of this shape; the first rows may see nothing.
    Allowed(&'static [usize]),
    Added(&'static [usize]),
    /// Such a number for all keys of every second query, of a dtype that holds it.
    Hidden(f64, &'static [usize]),
}

#[derive(Debug)]
struct Case {
    query: &'static [usize],
    key: &'static [usize],
    value: &'static [usize],
    mask: Mask,
    /// Whether the operands are transposed views, such as projections split into several heads.
    transposed: bool,
}

const fn case(
    query: &'static [usize],
    key: &'static [usize],
    value: &'static [usize],
    mask: Mask,
    transposed: bool,
) -> Case {
    Case { query, key, value, mask, transposed }
}

const CASES: &[Case] = &[
    case(&[1, 1], &[1, 1], &[1, 1], Mask::None, false),
    case(&[37, 5], &[70, 5], &[70, 3], Mask::None, false),
    case(&[2, 70, 33], &[2, 37, 33], &[2, 37, 65], Mask::Causal, false),
    case(&[2, 37, 64], &[2, 130, 64], &[2, 130, 64], Mask::Causal, true),
    case(&[2, 3, 65, 40], &[2, 3, 67, 40], &[2, 3, 67, 40], Mask::Allowed(&[2, 1, 1, 67]), true),
    case(&[2, 3, 35, 9], &[2, 3, 66, 9], &[2, 3, 66, 9], Mask::Allowed(&[35, 66]), false),
    case(&[2, 70, 120], &[2, 45, 120], &[2, 45, 72], Mask::None, true),
    case(&[2, 3, 35, 16], &[2, 3, 66, 16], &[2, 3, 66, 16], Mask::Added(&[3, 1, 66]), true),
    case(&[2, 6, 40, 16], &[2, 2, 40, 16], &[2, 2, 40, 16], Mask::Causal, true),
    // Heads as wide as kernels without a mask, some of which share a key.
    case(&[2, 130, 64], &[1, 70, 64], &[1, 70, 64], Mask::None, false),
    case(&[2, 66, 128], &[1, 35, 128], &[1, 35, 128], Mask::Causal, true),
    case(&[3, 33, 200], &[3, 20, 200], &[3, 20, 7], Mask::None, false),
    case(&[2, 5, 4], &[2, 0, 4], &[2, 0, 3], Mask::None, false),
    case(&[2, 0, 4], &[2, 5, 4], &[2, 5, 3], Mask::None, false),
    // NaN scores are equal.
    case(&[2, 5, 0], &[2, 7, 0], &[2, 7, 4], Mask::None, false),
    // A logarithm of a sum that has no digits left for the sum.
    case(&[4, 8], &[9, 8], &[9, 8], Mask::Hidden(-1e9, &[4, 9]), false),
    case(&[2, 35, 16], &[2, 40, 16], &[2, 40, 3], Mask::Hidden(f32::MIN as f64, &[35, 40]), true),
    case(&[2, 4, 7, 150], &[2, 2, 70, 150], &[2, 2, 70, 9], Mask::Hidden(1e6, &[7, 70]), false),
];

/// Heads as wide as kernels without a mask: lengths around their tiles, heads that share a key, strided rows.
const OF_GROUPS: &[Case] = &[
    case(&[1, 64], &[1, 64], &[1, 64], Mask::Causal, false),
    case(&[3, 77, 64], &[3, 77, 64], &[3, 77, 64], Mask::Causal, true),
    case(&[128, 64], &[129, 64], &[129, 64], Mask::None, false),
    case(&[129, 64], &[128, 64], &[128, 64], Mask::Causal, false),
    case(&[2, 300, 64], &[1, 513, 64], &[1, 513, 64], Mask::None, true),
    case(&[300, 64], &[513, 64], &[513, 64], Mask::Causal, false),
    case(&[5, 64], &[0, 64], &[0, 64], Mask::None, false),
    case(&[1, 128], &[77, 128], &[77, 128], Mask::None, false),
    case(&[2, 3, 129, 128], &[2, 3, 128, 128], &[2, 3, 128, 128], Mask::Causal, true),
    case(&[4, 77, 128], &[2, 129, 128], &[2, 129, 128], Mask::None, true),
    case(&[300, 128], &[260, 128], &[260, 128], Mask::Causal, false),
];

/// Pseudo-random values between -1 and 1.
fn numbers(sizes: &[usize], from: usize) -> Vec<f64> {
    let count = sizes.iter().product::<usize>();
    (from..from + count).map(|i| ((i * 7919 + 13) % 1009) as f64 / 504.5 - 1.0).collect()
}

impl Case {
    fn operand(&self, sizes: &[usize], nth: usize, (device, dtype): (Device, DType)) -> Tensor {
        let mut order = sizes.to_vec();
        let n = order.len();
        let transposed = self.transposed && n > 2;
        if transposed {
            order.swap(n - 3, n - 2);
        }
        let made = Tensor::from_vec(numbers(&order, nth * 31), &order).unwrap();
        // As much as the dtype holds, on every device.
        let made = made.to_dtype(dtype).unwrap().to_device(device).unwrap();
        if transposed { made.transpose(n - 3, n - 2).unwrap() } else { made }
    }

    /// The result without gradients, with them, and these.
    fn results(&self, device: Device, dtype: DType) -> Vec<Vec<f64>> {
        let on = (device, dtype);
        let operands = [self.query, self.key, self.value];
        let [q, k, v]: [Tensor; 3] = std::array::from_fn(|i| self.operand(operands[i], i, on));
        let mask = match self.mask {
            Mask::None | Mask::Causal => None,
            Mask::Allowed(sizes) => {
                let last = sizes[sizes.len() - 1];
                let seen = |(i, x): (usize, &f64)| *x > -0.3 && (sizes.len() > 2 || i >= 2 * last);
                let allowed = numbers(sizes, 5).iter().enumerate().map(seen).collect::<Vec<bool>>();
                Some(Tensor::from_vec(allowed, sizes).unwrap().to_device(device).unwrap())
            }
            Mask::Added(sizes) => {
                let hidden = |x: &f64| if *x < -0.5 { f64::NEG_INFINITY } else { *x };
                let added = numbers(sizes, 5).iter().map(hidden).collect::<Vec<f64>>();
                let added = Tensor::from_vec(added, sizes).unwrap().to_dtype(dtype).unwrap();
                Some(added.to_device(device).unwrap())
            }
            Mask::Hidden(number, sizes) => {
                let (count, keys) = (sizes.iter().product::<usize>(), sizes[sizes.len() - 1]);
                let added =
                    (0..count).map(|i| if i / keys % 2 == 0 { number } else { 0.0 }).collect::<Vec<f64>>();
                let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
                let added = Tensor::from_vec(added, sizes).unwrap().to_dtype(wide).unwrap();
                Some(added.to_device(device).unwrap())
            }
        };
        let heads = |sizes: &[usize]| sizes.len().checked_sub(3).map(|d| sizes[d]);
        let options = AttentionOptions {
            attn_mask: mask.as_ref(),
            is_causal: matches!(self.mask, Mask::Causal),
            enable_gqa: heads(self.query) != heads(self.key),
            ..Default::default()
        };
        let mut made = vec![q.scaled_dot_product_attention_with(&k, &v, options).unwrap()];
        let [q, k, v] = [q, k, v].map(|t| t.detach().requires_grad_(true).unwrap());
        let y = q.scaled_dot_product_attention_with(&k, &v, options).unwrap();
        made.push(y.detach());
        let grad = self.operand(y.shape(), 7, on);
        y.mul(&grad).unwrap().sum_all().unwrap().backward().unwrap();
        made.extend([q, k, v].map(|leaf| leaf.grad().unwrap()));
        made.iter().map(|t| t.to_vec_f64().unwrap()).collect()
    }

    fn check(&self, dtype: DType) {
        let (expected, got) = (self.results(Device::CPU, dtype), self.results(cuda(0), dtype));
        let tolerance = match dtype {
            DType::F64 => 1e-12,
            DType::F32 => 2e-5,
            DType::F16 => 2e-3,
            _ => 1.6e-2,
        };
        for (which, (expected, got)) in expected.iter().zip(&got).enumerate() {
            assert_eq!(expected.len(), got.len(), "{self:?} {dtype} {which}");
            let largest = expected.iter().fold(1f64, |most, x| most.max(x.abs()));
            for (at, (wanted, own)) in expected.iter().zip(got).enumerate() {
                let off = (wanted - own).abs();
                assert!(off <= tolerance * largest, "{self:?} {dtype} {which}, {at}: {own}, not {wanted}");
            }
        }
        let bits = |all: &[Vec<f64>]| all.concat().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        assert!(bits(&got) == bits(&self.results(cuda(0), dtype)), "{self:?}: other bits the second time");
    }
}
