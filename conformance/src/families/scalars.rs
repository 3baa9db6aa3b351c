//! The scalar arguments of ops, such as `alpha` and `eps`, replaced one at a time: 0, negative, a half, large. Samples have
//! the usual values, for which a kernel that uses the magnitude of a factor is correct.

use super::{Context, Family, Op, Scope, corners, factor, is_in};
use crate::case::Case;
use crate::compare;
use crate::oracle::{self, Value};
use crate::outcome::{Steps, Stop};
use keyway::dispatcher::op::Out;
use keyway::dispatcher::schema::Kind;
use keyway::ops::attention;
use keyway::ops::sample::SampleArg;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "scalars",
    about: "numbers beside tensors, such as alpha, made 0, negative, a half, large",
    cases,
    run,
};

/// Replacements of a scalar, by name in the case.
const OTHERS: [(&str, SampleArg); 5] = [
    ("0", SampleArg::Int(0)),
    ("-2", SampleArg::Int(-2)),
    ("0.5", SampleArg::Float(0.5)),
    ("-1.25", SampleArg::Float(-1.25)),
    ("40", SampleArg::Int(40)),
];

/// An additional replacement for attention, which makes scores large and of the opposite sign.
const LARGE_NEGATIVE: (&str, SampleArg) = ("-40", SampleArg::Int(-40));

/// Indices of an op's arguments that are scalars of any kind, or floating-point ones.
fn numbers(op: &Op) -> Vec<usize> {
    let Ok(entry) = op.def.entry() else { return Vec::new() };
    let params = entry.schema.params.iter().enumerate();
    params.filter(|(_, p)| matches!(p.kind, Kind::Scalar | Kind::Float)).map(|(nth, _)| nth).collect()
}

/// Whether an argument keeps a denominator positive, which a negative one would not.
fn never_negative(op: &Op, position: usize) -> bool {
    op.def.entry().is_ok_and(|entry| entry.schema.params[position].name == "eps")
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| oracle::find(op.def.name()).is_some()) {
        let positions = numbers(op);
        let chosen = if positions.is_empty() { Vec::new() } else { corners::chosen(op) };
        let large = is_in(op.def, &[attention::ALL]) && !corners::FITTING.contains(&op.def.name());
        for dtype in scope.dtypes(op.def) {
            for (turn, &nth) in chosen.iter().enumerate() {
                for &position in &positions {
                    let mut push = |(name, other): &(&str, SampleArg)| {
                        let same = op.samples[nth].args.get(position) == Some(other);
                        let suits = !name.starts_with('-') || !never_negative(op, position);
                        if !same && suits {
                            cases.push(Case::of(
                                FAMILY.name,
                                op.def,
                                dtype,
                                nth,
                                format!("{position}={name}"),
                            ));
                        }
                    };
                    let wanted = |i| !scope.quick || i == turn % OTHERS.len();
                    let others =
                        OTHERS.iter().enumerate().filter(|(i, _)| wanted(*i)).map(|(_, other)| other);
                    others.filter(|_| scope.wants(turn, chosen.len())).for_each(&mut push);
                    if large {
                        push(&LARGE_NEGATIVE);
                    }
                }
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let (def, oracle) = (context.def()?, context.oracle()?);
    let (sample, mut inputs) = context.inputs()?;
    let unknown = || Stop::Skipped(format!("there is no variant `{}`", context.case.variant));
    let (position, name) = context.case.variant.split_once('=').ok_or_else(unknown)?;
    let position: usize = position.parse().map_err(|_| unknown())?;
    let (_, other) =
        OTHERS.iter().chain([&LARGE_NEGATIVE]).find(|(other, _)| *other == name).ok_or_else(unknown)?;
    let float = def.entry()?.schema.params.get(position).is_some_and(|p| p.kind == Kind::Float);
    let other = match *other {
        SampleArg::Int(v) if float => Value::Float(v as f64),
        SampleArg::Int(v) => Value::Int(v),
        SampleArg::Float(v) => Value::Float(v),
        _ => return Err(unknown()),
    };
    *inputs.0.get_mut(position).ok_or_else(unknown)? = other;
    let prepared = context.place_bare(&inputs)?;
    match (oracle(&inputs), prepared.call(def, Out::New)) {
        (Ok(expected), Ok(got)) => Ok(compare::outputs(&expected, &got, factor(def, &sample))?),
        (Err(_), Err(_)) => Ok(()),
        // An integer dtype does not accept a half, an op a negative count: the host refuses it before any kernel is called.
        (Ok(_), Err(error)) if crate::call::is_of_arguments(&error) => Ok(()),
        (Ok(_), Err(error)) => Err(context.refused(error)),
        (Err(unknown), Ok(_)) => Err(Stop::Skipped(unknown.to_string())),
    }
}
