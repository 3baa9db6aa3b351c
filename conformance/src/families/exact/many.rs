//! Many addends at one index, added to a value so large that each single one is lost in rounding: sequential sums in the
//! dtype would not change it.

use super::super::{Context, Op, Scope};
use crate::array::{Array, Number};
use crate::compare::{self, Tolerance};
use crate::oracle::{Inputs, Value};
use crate::outcome::{Steps, Stop};
use keyway::DType;

/// The variant.
pub(super) const MANY: &str = "many";

/// The ops that add at indices.
const OPS: [&str; 3] = ["index_add", "scatter_add", "index_put"];
/// The number of addends, and of columns of the added rows: kernels add a single column by scalars, many by vectors.
const ONES: usize = 3_000;
const COLUMNS: [usize; 3] = [1, 5, 40];
const ROWS: usize = 12;
/// The row that is added to.
const AT: usize = 7;

pub(super) fn cases(scope: &Scope<'_>, op: &Op, push: &mut impl FnMut(DType, usize, &str)) {
    if OPS.contains(&op.def.name()) {
        let served = scope.served(op.def).into_iter().chain(scope.others(op.def));
        served.filter(|dtype| dtype.is_float()).for_each(|dtype| push(dtype, 0, MANY));
    }
}

/// The value from which the dtype has no odd integers.
fn large(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2048.0,
        DType::BF16 => 256.0,
        DType::F64 => 2f64.powi(53),
        _ => 2f64.powi(24),
    }
}

pub(super) fn many(context: &Context<'_>) -> Steps {
    let (def, dtype) = (context.def()?, context.dtype());
    for columns in COLUMNS {
        // For f64 the addends are 2, since no wider type is required.
        let addend = Number::Float(if dtype == DType::F64 { 2.0 } else { 1.0 });
        let own = Value::Array(Array::from_fn(dtype, [ROWS, columns], |_| Number::Float(large(dtype))));
        let source = Value::Array(Array::from_fn(dtype, [ONES, columns], |_| addend));
        let row = Array::from_fn(DType::I64, [ONES], |_| Number::Int(AT as i128));
        let each = Array::from_fn(DType::I64, [ONES, columns], |_| Number::Int(AT as i128));
        let inputs = Inputs(match def.name() {
            "index_add" => vec![own, Value::Int(0), Value::Array(row), source, Value::Int(1)],
            "scatter_add" => vec![own, Value::Int(0), Value::Array(each), source],
            "index_put" => {
                vec![own, Value::Arrays(vec![row]), Value::Ints(vec![0]), source, Value::Bool(true)]
            }
            other => return Err(Stop::Skipped(format!("`{other}` adds at no indices"))),
        });
        let expected = context.expected(&inputs)?;
        let got = context.call(&context.place_bare(&inputs)?)?;
        compare::within(&expected, &got, |_| Tolerance { rtol: 0.0, atol: 0.0 })?;
    }
    Ok(())
}
