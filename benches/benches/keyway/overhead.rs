//! The overhead of a call before any element is touched.

use criterion::Criterion;
use keyway::Tensor;
use keyway::autograd::{BackwardOptions, grad};
use keyway_benches::{case, wanted};
use keyway_dispatcher::op::{Arg, Args, OpEntry, OpSpec, Out, Plan, Rule};
use keyway_dispatcher::{call, registry};
use smallvec::SmallVec;

fn ones(n: usize) -> Tensor {
    Tensor::from_vec(vec![1.0f32; n], [n]).expect("host memory")
}

/// An op whose kernel, in a test plugin, does nothing, and whose rule has no output: a call consists of the dispatcher and the
/// ABI crossing.
fn nothing() -> &'static OpEntry {
    let rule = Rule::Structured(|args| {
        let compute = args.tensor(0)?.dtype();
        let outputs = SmallVec::new();
        Ok(Plan { compute, cast: 0, cast_index: 0, broadcast: 0, contiguous: 0, alias: false, outputs })
    });
    let schema = "test_nothing(Tensor self) -> Tensor";
    let spec = OpSpec {
        schema,
        rule,
        decomposition: None,
        extra: None,
        foreign: None,
        owner: "benches",
        library: None,
    };
    keyway::runtime::start().expect("the ops");
    let op = registry::register_ops(&[spec]).expect("a new name")[0];
    let program = std::env::current_exe().expect("the program's path");
    let library =
        format!("{}keyway_test_minimal{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    keyway::runtime::load_backends(&[program.with_file_name(library)]).expect("a plugin beside the program");
    op
}

/// The cases.
pub fn cases(c: &mut Criterion) {
    for n in [1usize, 16, 1024] {
        let (a, b, mut out) = (ones(n), ones(n), ones(n));
        let leaf = || ones(n).requires_grad_(true).expect("a float leaf");
        let (ag, bg, one) = (leaf(), leaf(), ones(n));
        case(c, &format!("overhead.add_{n}"), "op", 1.0, || a.add(&b).expect("add"));
        case(c, &format!("overhead.add_out_{n}"), "op", 1.0, || a.add_out(&b, &mut out).expect("add"));
        case(c, &format!("overhead.add_inplace_{n}"), "op", 1.0, || a.add_(&b).expect("add"));
        case(c, &format!("overhead.add_grad_{n}"), "op", 1.0, || ag.add(&bg).expect("add"));
        case(c, &format!("overhead.add_fwdbwd_{n}"), "op", 1.0, || {
            let options =
                BackwardOptions { gradients: Some(vec![one.clone()]), ..BackwardOptions::default() };
            grad(&[ag.add(&bg).expect("add")], &[ag.clone(), bg.clone()], options).expect("a graph")
        });
    }
    if wanted("overhead", "") {
        let (op, t) = (nothing(), ones(1));
        case(c, "overhead.dispatch_noop", "op", 1.0, || {
            call::call(Args { op, values: &[Arg::from(t.as_ref())] }, Out::New).expect("a kernel")
        });
    }
    let a = ones(1024);
    let ag = ones(1024).requires_grad_(true).expect("a float leaf");
    let m = Tensor::from_vec(vec![1.0f32; 1024], [32, 32]).expect("host memory");
    case(c, "overhead.view_1024", "op", 1.0, || a.view([32, 32]).expect("view"));
    case(c, "overhead.view_grad_1024", "op", 1.0, || ag.view([32, 32]).expect("view"));
    case(c, "overhead.transpose", "op", 1.0, || m.t().expect("transpose"));
    for (label, n) in [("1", 1usize), ("1024", 1024), ("1e6", 1_000_000), ("1e8", 100_000_000)] {
        case(c, &format!("overhead.empty_{label}"), "op", 1.0, || Tensor::empty([n]).expect("memory"));
    }
    let scalar = Tensor::new(1.0f32).expect("host memory");
    case(c, "overhead.item", "op", 1.0, || scalar.item::<f32>().expect("one element"));
}
