//! Complex tensors: construction, arithmetic, gradients.

mod derivatives_support;

use derivatives_support::check;
use keyway::prelude::*;
use keyway::{Complex, Result};

type C = Complex<f64>;

fn c(re: f64, im: f64) -> C {
    C::new(re, im)
}

fn sample() -> Tensor {
    Tensor::new([[c(0.5, -1.2), c(-0.7, 0.3)], [c(1.4, 0.9), c(0.2, 2.1)]]).unwrap()
}

fn other() -> Tensor {
    Tensor::new([[c(1.5, 0.4), c(-0.6, -0.8)], [c(0.3, -1.9), c(2.2, 0.1)]]).unwrap()
}

#[test]
fn functions_have_first_and_second_derivatives() {
    type Unary = fn(&Tensor) -> Result<Tensor>;
    let functions: &[(&str, Unary)] = &[
        ("neg", |x| x.neg()),
        ("conj", |x| x.conj()),
        ("abs", |x| x.abs()),
        ("angle", |x| x.angle()),
        ("sgn", |x| x.sgn()),
        ("real", |x| x.real()),
        ("imag", |x| x.imag()),
        ("view_as_real", |x| x.view_as_real()),
        ("reciprocal", |x| x.reciprocal()),
        ("square", |x| x.square()),
        ("sqrt", |x| x.sqrt()),
        ("rsqrt", |x| x.rsqrt()),
        ("exp", |x| x.exp()),
        ("expm1", |x| x.expm1()),
        ("log", |x| x.log()),
        ("log2", |x| x.log2()),
        ("log10", |x| x.log10()),
        ("log1p", |x| x.log1p()),
        ("sin", |x| x.sin()),
        ("cos", |x| x.cos()),
        ("tan", |x| x.tan()),
        ("sinh", |x| x.sinh()),
        ("cosh", |x| x.cosh()),
        ("tanh", |x| x.tanh()),
        ("asin", |x| x.asin()),
        ("acos", |x| x.acos()),
        ("atan", |x| x.atan()),
        ("asinh", |x| x.asinh()),
        ("acosh", |x| x.acosh()),
        ("atanh", |x| x.atanh()),
        ("sigmoid", |x| x.sigmoid()),
        ("pow 3", |x| x.pow(3)),
        ("pow 0.5", |x| x.pow(0.5)),
        ("sum", |x| x.sum_all()),
        ("mean", |x| x.mean(0)),
        ("prod", |x| x.prod(1)),
        ("cumsum", |x| x.cumsum(1)),
        ("cumprod", |x| x.cumprod(0)),
        ("transpose", |x| x.t()),
        ("flip", |x| x.flip(0)),
        ("tril", |x| x.tril()),
        ("trace", |x| x.trace()),
        ("to real parts", |x| x.real()?.mul(&x.imag()?)),
        ("index", |x| x.select(0, 1)?.mul(&x.select(1, 0)?)),
    ];
    for (name, f) in functions {
        check(name, &[sample()], |inputs| f(&inputs[0]));
    }
}

#[test]
fn functions_of_two_tensors_have_first_and_second_derivatives() {
    type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let functions: &[(&str, Binary)] = &[
        ("add", |a, b| a.add(b)),
        ("sub", |a, b| a.sub(b)),
        ("mul", |a, b| a.mul(b)),
        ("div", |a, b| a.div(b)),
        ("pow", |a, b| a.pow(b)),
        ("mm", |a, b| a.mm(b)),
        ("matmul", |a, b| a.matmul(b)),
        ("addmm", |a, b| a.addmm(a, b)),
        ("outer", |a, b| a.select(0, 0)?.outer(&b.select(0, 1)?)),
        ("dot", |a, b| a.select(0, 0)?.dot(&b.select(0, 1)?)),
        ("mv", |a, b| a.mv(&b.select(0, 1)?)),
        ("einsum", |a, b| Tensor::einsum("ij,kj->ik", &[a, b])),
        ("where", |a, b| a.real()?.gt(0)?.where_cond(a, b)),
        ("cat", |a, b| Tensor::cat(&[a, b], 0)),
    ];
    for (name, f) in functions {
        check(name, &[sample(), other()], |inputs| f(&inputs[0], &inputs[1]));
        // A real tensor receives a real gradient.
        check(&format!("real {name}"), &[sample(), other().abs().unwrap()], |inputs| {
            f(&inputs[0], &inputs[1])
        });
        check(&format!("{name} real"), &[sample().abs().unwrap(), other()], |inputs| {
            f(&inputs[0], &inputs[1])
        });
    }
}

/// A loss of `z`, `w` (complex) and `r` (real), its value, and the gradients of all three: those of PyTorch 2.15.
type Row = (&'static str, f64, [Option<&'static [(f64, f64)]>; 3]);
#[rustfmt::skip]
const PYTORCH: &[Row] = &[
    ("abs", 3.725909008295715, [Some(&[(0.3846153846153846, -0.9230769230769229), (-0.9191450300180579, 0.3939192985791677), (0.8411784753765537, 0.5407575913134989)]), None, None]),
    ("angle", 4.945392396993565, [Some(&[(0.3550295857988165, 0.14792899408284022), (-0.7758620689655172, -1.8103448275862066), (-0.8122743682310472, 1.2635379061371843)]), None, Some(&[(-1.176005207095135, 0.0), (2.7367008673047097, 0.0), (0.5713374798336268, 0.0)])]),
    ("sgn", 3.092569269136629, [Some(&[(0.873918980427856, 0.36413290851160657), (0.2580850576897996, 0.6021984679428657), (-0.4665742394365569, 0.7257821502346438)]), Some(&[(0.3846153846153846, 0.9230769230769229), (-0.9191450300180579, -0.3939192985791677), (0.8411784753765537, -0.5407575913134989)]), None]),
    ("product", -3.6099999999999994, [Some(&[(0.4, 1.5), (-0.8, -0.6), (-1.9, 0.3)]), Some(&[(-1.2, 0.5), (0.3, -0.7), (0.9, 1.4)]), None]),
    ("real product", 2.7, [Some(&[(0.5, 0.0), (1.5, 0.0), (2.5, 0.0)]), None, Some(&[(0.5, 0.0), (-0.7, 0.0), (1.4, 0.0)])]),
    ("quotient", 2.464225773865642, [Some(&[(0.24775254861570423, -0.59460611667769), (-0.9191450300180579, 0.39391929857916774), (0.4373078658994368, 0.28112648522106654)]), Some(&[(-0.5212055690795104, -0.1389881517545361), (0.45694638635183454, 0.6092618484691128), (-0.07015498775336527, 0.44431492243798)]), None]),
    ("conj", -0.8400000000000001, [Some(&[(1.5, 0.4), (-0.6, -0.8), (0.3, -1.9)]), Some(&[(0.5, -1.2), (-0.7, 0.3), (1.4, 0.9)]), None]),
    ("exp", 6.200506541336212, [Some(&[(1.6487212707001284, -4.6009967995007544e-17), (0.4965853037914095, -5.866879381573416e-19), (4.055199966844675, -1.3417721578256042e-16)]), None, None]),
    ("log", 2.1320331400432018, [Some(&[(0.7100591715976332, 0.29585798816568054), (-0.517241379310345, -1.2068965517241381), (-0.3249097472924188, 0.5054151624548736)]), None, None]),
    ("sqrt", 3.316696267734052, [Some(&[(0.45001643625473087, -0.5108294681810459), (-0.5181152245420313, -0.24458678673850515), (-0.09595315153246219, 0.7393048276777582)]), Some(&[(0.9486832980505138, 0.6324555320336759), (0.17546696353785637, -0.854861775548068), (1.237806870579842, -0.36354621281848326)]), None]),
    ("tanh", 3.595744850143298, [Some(&[(-1.615417121540153, -3.4987199762520422), (-0.18174103551292387, 0.646947419813698), (-0.4788177513571012, 0.022690388330337957)]), Some(&[(1.4586325848541404, 0.8383693025074906), (-0.63983593026318, -0.18971709151908692), (1.0207328498329467, -0.12134377133475231)]), None]),
    ("pow", 3.7397625647455555, [Some(&[(2.7633612391052798, 0.6250670266224914), (13.748225216262078, 1.2676221445734708), (-3.73231113509768, 1.4029652593994295)]), Some(&[(-2.8340934109864593, 0.37408937141351256), (28.048250753426597, -7.038411976362246), (2.638035822529778, -0.12175028745535783)]), None]),
    ("real power", 3.6718976718549827, [Some(&[(-0.3301331385399668, 0.3622687093813815), (0.3030181920429657, -0.0370418643091697), (2.24333756853202, -2.4267976872262405)]), None, Some(&[(1.730625290989753, 0.0), (-0.36702754319906933, 0.0), (0.4175769301888283, 0.0)])]),
    ("polar", -4.166660820735967, [Some(&[(0.4387912809451864, -0.2397127693021015), (0.10610580250155435, -1.4962424799060816), (-2.002859038867334, -1.4961803602598913)]), None, Some(&[(1.420795079753403, 0.0), (0.6667734580351825, 0.0), (-1.952305360842515, 0.0)])]),
    ("complex", 8.899999999999999, [Some(&[(0.575, 0.65), (-2.55, 0.9000000000000001), (-2.875, 12.625)]), Some(&[(-0.475, 0.55), (-1.125, -1.7249999999999999), (11.0, -2.125)]), Some(&[(-0.3699999999999999, 0.0), (2.3600000000000003, 0.0), (8.259999999999998, 0.0)])]),
    ("mm", 27.641315010736953, [Some(&[(5.706674521819576, -13.696018852366981), (-13.637679964118961, 5.8447199846224125), (12.480862611709473, 8.023411678956089)]), Some(&[(-30.07810138890634, 30.87293299723628), (2.928326978057638, -27.60994007882919), (-34.177759158187044, -41.038410935350655)]), None]),
    ("prod", 1.6477724357446935, [Some(&[(0.48750663779428816, -1.1700159307062914), (-1.9886908707263549, 0.852296087454152), (0.8328091733005673, 0.5353773256932217)]), None, None]),
    ("cumprod", 4.4033999999999995, [Some(&[(1.386, -3.092), (-3.0630000000000006, 3.4310000000000005), (1.884, -0.2779999999999999)]), Some(&[(0.5, 1.2), (0.010000000000000009, -0.99), (-0.877, -1.395)]), None]),
    ("norm", 2.2449944320643644, [Some(&[(0.22271770159368703, -0.5345224838248489), (-0.3118047822311618, 0.13363062095621223), (0.6236095644623236, 0.40089186286863665)]), None, None]),
    ("vdot", 0.8612200647918044, [Some(&[(-1.5512875914275999, -0.05921831374461691), (0.7617100748327135, 0.6479180209705098), (0.12656463133653267, 1.9193700513696275)]), Some(&[(-0.7524209275786559, 1.0601239303693104), (0.7489374973583846, -0.1381760654041053), (-1.1669491237909717, -1.1866885617058431)]), None]),
    ("view_as_real", 2.1, [Some(&[(0.0, 0.5), (0.0, 1.5), (0.0, 2.5)]), None, Some(&[(-1.2, 0.0), (0.3, 0.0), (0.9, 0.0)])]),
    ("mean", 1.8010028070802973, [Some(&[(0.28292879586435704, -0.43327713330906664), (0.029366355610866555, 0.33203723928084816), (0.4975623067261316, 0.4044043298933407)]), Some(&[(0.39126350269772187, 0.18625425964118925), (-0.24042161305787166, 0.0814978062225939), (0.14677008402994013, -0.5350105795324257)]), None]),
];

fn loss(name: &str, z: &Tensor, w: &Tensor, r: &Tensor) -> Result<Tensor> {
    let real_sum = |t: Tensor| t.real()?.sum_all();
    match name {
        "abs" => z.abs()?.sum_all(),
        "angle" => z.angle()?.mul(r)?.sum_all(),
        "sgn" => real_sum(z.sgn()?.mul(w)?),
        "product" => z.mul(w)?.imag()?.sum_all(),
        "real product" => real_sum(z.mul(r)?),
        "quotient" => z.div(w)?.abs()?.sum_all(),
        "conj" => real_sum(z.conj()?.mul(w)?),
        "exp" => z.exp()?.abs()?.sum_all(),
        "log" => z.log()?.imag()?.sum_all(),
        "sqrt" => real_sum(z.sqrt()?.mul(w)?),
        "tanh" => real_sum(z.tanh()?.mul(w)?),
        "pow" => real_sum(z.pow(w)?),
        "real power" => real_sum(r.pow(z)?),
        "polar" => real_sum(Tensor::polar(r, r)?.mul(z)?),
        "complex" => Tensor::complex(r, &r.square()?)?.mul(z)?.mul(w)?.imag()?.sum_all(),
        "mm" => z.outer(w)?.mm(&w.outer(z)?)?.abs()?.sum_all(),
        "prod" => z.prod_all()?.abs(),
        "cumprod" => real_sum(z.cumprod(0)?.mul(w)?),
        "norm" => z.norm_all(),
        "vdot" => z.vdot(w)?.abs(),
        "view_as_real" => z.view_as_real()?.select(1, 1)?.mul(r)?.sum_all(),
        "mean" => z.mul(w)?.mean_all()?.abs(),
        other => panic!("no loss {other}"),
    }
}

#[test]
fn values_and_gradients_are_those_of_pytorch() {
    for (name, value, gradients) in PYTORCH {
        let z = Tensor::new([c(0.5, -1.2), c(-0.7, 0.3), c(1.4, 0.9)]).unwrap().requires_grad_(true).unwrap();
        let w =
            Tensor::new([c(1.5, 0.4), c(-0.6, -0.8), c(0.3, -1.9)]).unwrap().requires_grad_(true).unwrap();
        let r = Tensor::new([0.5f64, 1.5, 2.5]).unwrap().requires_grad_(true).unwrap();
        let made = loss(name, &z, &w, &r).unwrap_or_else(|e| panic!("{name}: {e}"));
        let got = made.item::<f64>().unwrap();
        assert!((got - value).abs() <= 1e-12 * value.abs(), "{name}: {got} is not {value}");
        made.backward().unwrap_or_else(|e| panic!("{name}: {e}"));
        for (t, expected) in [&z, &w, &r].into_iter().zip(gradients) {
            let Some(expected) = expected else {
                assert!(t.grad().is_none(), "{name}");
                continue;
            };
            let got = t.grad().unwrap();
            assert_eq!(got.dtype(), t.dtype(), "{name}");
            let got = got.to_dtype(DType::C128).unwrap().to_vec::<C>().unwrap();
            for (got, &(re, im)) in got.iter().zip(*expected) {
                let apart = (got - c(re, im)).norm();
                assert!(apart <= 1e-12 * c(re, im).norm().max(1.0), "{name}: {got} is not {re} + {im}i");
            }
        }
    }
}

#[test]
fn promotion_follows_pytorch() -> Result<()> {
    let of = |dtype| Tensor::ones_with([2], dtype);
    for (a, b, expected) in [
        (DType::C64, DType::F32, DType::C64),
        (DType::C64, DType::F64, DType::C128),
        (DType::C64, DType::I64, DType::C64),
        (DType::C64, DType::BOOL, DType::C64),
        (DType::C64, DType::F16, DType::C64),
        (DType::C64, DType::C128, DType::C128),
    ] {
        assert_eq!(of(a)?.mul(&of(b)?)?.dtype(), expected, "{a} {b}");
        assert_eq!(of(b)?.add(&of(a)?)?.dtype(), expected, "{b} {a}");
    }
    assert_eq!(of(DType::C64)?.mul(2.5)?.dtype(), DType::C64);
    // A complex 0-d tensor raises the category; floats determine the width.
    let i = Tensor::new(Complex::new(0.0f64, 1.0))?;
    assert_eq!(of(DType::F32)?.mul(&i)?.dtype(), DType::C64);
    assert_eq!(of(DType::F64)?.mul(&i)?.dtype(), DType::C128);
    assert_eq!(of(DType::I64)?.mul(&i)?.dtype(), DType::C128);
    Ok(())
}

#[test]
fn what_has_no_meaning_is_refused_with_a_remedy() -> Result<()> {
    let z = sample();
    let text = |made: Result<Tensor>| made.unwrap_err().to_string();
    type Call = fn(&Tensor) -> Result<Tensor>;
    let ordered: &[(&str, Call)] = &[
        ("lt", |z| z.lt(z)),
        ("ge", |z| z.ge(1)),
        ("amax", |z| z.amax(0)),
        ("argmin", |z| z.argmin(0)),
        ("sort", |z| Ok(z.sort(0)?.0)),
        ("topk", |z| Ok(z.topk(1, 0)?.0)),
        ("clamp", |z| z.clamp(0, 1)),
        ("cummax", |z| Ok(z.cummax(0)?.0)),
    ];
    for (name, call) in ordered {
        let text = text(call(&z));
        assert!(text.contains("have no order") && text.contains(name), "{name}: {text}");
    }
    assert!(text(z.to_dtype(DType::F32)).contains("real()"));
    assert!(text(Tensor::zeros_with([2, 2], DType::F64)?.copy_(&z)).contains("imaginary part"));
    assert!(text(z.div_with(&z, keyway::tensor::Rounding::Floor)).contains("real numbers"));
    assert!(text(Tensor::new([1.0f32])?.imag()).contains("complex"));
    assert!(text(Tensor::new([1.0f32, 2.0, 3.0])?.view_as_complex()).contains("size 2"));
    assert!(text(Tensor::new([1i64, 2])?.view_as_complex()).contains("f32 or f64"));
    let odd = Tensor::new([0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?.narrow(0, 1, 4)?.reshape((2, 2))?;
    assert!(text(odd.view_as_complex()).contains("contiguous()"));
    Ok(())
}

#[test]
fn views_of_parts_share_memory_and_history() -> Result<()> {
    let z = sample();
    z.real()?.fill_(1.0)?;
    assert_eq!(z.real()?.to_vec::<f64>()?, [1.0; 4]);
    assert_eq!(z.imag()?.to_vec::<f64>()?, [-1.2, 0.3, 0.9, 2.1]);
    // An in-place change of the imaginary part is recorded in the graph of the complex tensor.
    let leaf = sample().requires_grad_(true)?;
    let y = leaf.mul(1)?;
    y.imag()?.mul_(3)?;
    y.abs()?.square()?.sum_all()?.backward()?;
    let grad = leaf.grad().unwrap().to_vec::<C>()?;
    let expected: Vec<C> = sample().to_vec::<C>()?.iter().map(|z| c(2.0 * z.re, 18.0 * z.im)).collect();
    assert!(grad.iter().zip(&expected).all(|(a, b)| (a - b).norm() < 1e-12), "{grad:?} {expected:?}");
    // An in-place change of the complex view is recorded in the graph of the real tensor.
    let parts = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?.requires_grad_(true)?;
    let y = parts.mul(1)?;
    y.view_as_complex()?.mul_(2)?;
    y.square()?.sum_all()?.backward()?;
    assert_eq!(parts.grad().unwrap().to_vec::<f64>()?, [8.0, 16.0, 24.0, 32.0]);
    Ok(())
}

#[test]
fn elements_are_moved_indexed_and_saved() -> Result<()> {
    let z = sample();
    let all = z.to_vec::<C>()?;
    assert_eq!(z.t()?.contiguous()?.to_vec::<C>()?, [all[0], all[2], all[1], all[3]]);
    assert_eq!(Tensor::cat(&[&z, &z], 1)?.select(0, 0)?.to_vec::<C>()?, [all[0], all[1], all[0], all[1]]);
    assert_eq!(z.index_select(0, &Tensor::new([1i64])?)?.to_vec::<C>()?, all[2..]);
    assert_eq!(z.flip(0)?.to_vec::<C>()?, [all[2], all[3], all[0], all[1]]);
    let mask = Tensor::new([[true, false], [false, true]])?;
    assert_eq!(z.masked_select(&mask)?.to_vec::<C>()?, [all[0], all[3]]);
    assert_eq!(z.masked_fill(&mask, 0)?.to_vec::<C>()?, [c(0.0, 0.0), all[1], all[2], c(0.0, 0.0)]);
    assert_eq!(z.eq(&z)?.to_vec::<bool>()?, [true; 4]);
    assert!(z.allclose(&z.add(1e-12)?)?);
    assert_eq!(z.to_dtype(DType::C64)?.to_vec::<Complex<f32>>()?[0], Complex::new(0.5, -1.2));
    assert_eq!(z.ne(0)?.to_vec::<bool>()?, [true; 4]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.npy");
    keyway::io::npy::save(&path, &z)?;
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.windows(4).any(|w| w == b"<c16"));
    let back = keyway::io::npy::load(&path)?;
    assert_eq!(back.to_vec::<C>()?, all);
    assert!(z.to_string().contains("0.5000-1.2000j"));
    Ok(())
}

#[test]
fn elements_of_16_bytes_are_broadcast_and_read_with_strides() {
    let part = |i: usize| c(i as f64 - 3.0, 0.5 * i as f64);
    let row = Tensor::new((0..70).map(part).collect::<Vec<C>>().as_slice()).unwrap();
    let column = Tensor::new((0..3).map(|i| c(0.0, i as f64)).collect::<Vec<C>>().as_slice()).unwrap();
    let sums = row.add(&column.unsqueeze(1).unwrap()).unwrap();
    let expected: Vec<C> = (0..3).flat_map(|i| (0..70).map(move |j| part(j) + c(0.0, i as f64))).collect();
    assert_eq!(sums.to_vec::<C>().unwrap(), expected);
    assert_eq!(
        sums.t().unwrap().sum(0).unwrap().to_vec::<C>().unwrap(),
        sums.sum(1).unwrap().to_vec::<C>().unwrap()
    );
    let total = sums.t().unwrap().sum_all().unwrap().to_vec::<C>().unwrap()[0];
    assert!((total - expected.iter().sum::<C>()).norm() < 1e-9, "{total}");
}

#[test]
fn a_real_factor_scales_both_parts_of_an_infinity() {
    let of = |z: C| Tensor::new([z]).unwrap();
    let (one, infinite) = (of(c(1.0, 1.0)), of(c(2.0, f64::INFINITY)));
    let value = |t: Result<Tensor>| t.unwrap().to_vec::<C>().unwrap()[0];
    assert_eq!(value(one.add_with(&infinite, 3)), c(7.0, f64::INFINITY));
    assert_eq!(value(one.sub_with(&infinite, 3)), c(-5.0, f64::NEG_INFINITY));
    let index = Tensor::new([0i64]).unwrap();
    assert_eq!(value(one.index_add(0, &index, &infinite)), c(3.0, f64::INFINITY));
    assert_eq!(value(one.scatter_add(0, &index, &infinite)), c(3.0, f64::INFINITY));
    let real = of(c(2.0, 0.0));
    assert_eq!(value(one.addcdiv(&infinite, &real)).im, f64::INFINITY);
}

#[test]
fn a_negative_real_base_has_the_gradient_of_the_complex_power() -> Result<()> {
    let exponents = || Tensor::new([c(-1.0, 1.0), c(0.5, -0.25)])?.requires_grad_(true);
    // By the complex base, and by a number.
    let (z, w, v) = (exponents()?, exponents()?, exponents()?);
    Tensor::new([-2.0f64, -2.0])?.pow(&z)?.abs()?.sum_all()?.backward()?;
    Tensor::new([c(-2.0, 0.0), c(-2.0, 0.0)])?.pow(&w)?.abs()?.sum_all()?.backward()?;
    v.rpow(-2.0)?.abs()?.sum_all()?.backward()?;
    let [z, w, v] = [z, w, v].map(|t| t.grad().unwrap().to_vec::<C>().unwrap());
    for (a, (b, c)) in z.iter().zip(w.iter().zip(&v)) {
        assert!(a.is_finite() && (a - b).norm() < 1e-14 && (a - c).norm() < 1e-14, "{z:?} {w:?} {v:?}");
    }
    Ok(())
}

#[test]
fn optimizers_update_complex_parameters_or_refuse_them() -> Result<()> {
    use keyway::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions, clip_grad_norm_};
    let w = Tensor::new([c(1.0, 1.0)])?.requires_grad_(true)?;
    w.set_grad(Tensor::new([c(0.0, 2.0)])?)?;
    let refused = Adam::new(vec![w.clone()], AdamOptions::default()).err().map(|e| e.to_string());
    assert!(refused.is_some_and(|text| text.contains("view_as_real()")));
    assert_eq!(clip_grad_norm_(&[&w], 1.0)?.item::<f64>()?, 2.0);
    Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() })?.step()?;
    let got = w.to_vec::<C>()?[0];
    assert!((got - c(1.0, 0.5)).norm() < 1e-6, "{got}");
    Ok(())
}

#[test]
fn special_values_are_printed() -> Result<()> {
    let text = |z| Tensor::new([z]).map(|t| t.to_string());
    assert_eq!(text(c(1.0, f64::NAN))?, "tensor([1.0000+nanj], dtype=c128)");
    assert_eq!(text(c(f64::INFINITY, -0.0))?, "tensor([inf-0.0000j], dtype=c128)");
    assert!(Tensor::new([c(1e-10, 1.0), c(1e10, 0.0)])?.to_string().contains("1.0000e-10"));
    Ok(())
}

#[test]
fn real_only_functions_refuse_complex_tensors() -> Result<()> {
    let z = sample();
    type Call = fn(&Tensor) -> Result<Tensor>;
    let calls: &[(&str, Call)] = &[
        ("maximum", |z| z.maximum(z)),
        ("hypot", |z| z.hypot(z)),
        ("nan_to_num", |z| z.nan_to_num()),
        ("cosine_similarity", |z| z.cosine_similarity(z, 0)),
        ("relu", |z| z.relu()),
        ("floor", |z| z.floor()),
    ];
    for (name, call) in calls {
        let text = call(&z).unwrap_err().to_string();
        assert!(text.contains(name) && !text.contains("to_dtype"), "{text}");
    }
    let nan = Tensor::new([c(f64::NAN, 1.0), c(1.0, 2.0)])?;
    assert_eq!(nan.nansum_all()?.item::<C>()?, c(1.0, 2.0));
    let x = Tensor::new([[c(1.0, 0.0), c(2.0, -1.0)], [c(3.0, -2.0), c(4.0, -3.0)]])?;
    assert_eq!(x.cov()?.to_vec::<C>()?, [c(1.0, 0.0); 4]);
    let real = z.abs()?.requires_grad_(true)?.sum_all()?;
    assert!(real.backward_with(&Tensor::new(c(1.0, 1.0))?).unwrap_err().to_string().contains("real"));
    Ok(())
}

#[test]
fn complex_scalars_have_the_precision_of_the_tensor() {
    let i = Complex::new(0.0, 1.0);
    let x = Tensor::new([1.0f32, -2.0]).unwrap();
    let rotated = (&x * i).unwrap();
    assert_eq!(rotated.dtype(), DType::C64);
    assert_eq!(rotated.to_vec::<Complex<f32>>().unwrap(), [Complex::new(0.0, 1.0), Complex::new(0.0, -2.0)]);
    let z = Tensor::new([Complex::new(1.0f64, 1.0)]).unwrap();
    for (made, wanted) in [
        (&z + i, Complex::new(1.0, 2.0)),
        (i - &z, Complex::new(-1.0, 0.0)),
        (i * z.clone(), Complex::new(-1.0, 1.0)),
        (z.clone() / i, Complex::new(1.0, -1.0)),
    ] {
        assert_eq!(made.unwrap().to_vec::<Complex<f64>>().unwrap(), [wanted]);
    }
    assert_eq!((Tensor::new([2i64]).unwrap() * i).unwrap().dtype(), DType::C64);
}
