//! The faults that `KEYWAY_FAULT` selects.

use keyway_sdk::abi::codes::dtype;
use keyway_sdk::author::{Call, Error, Real, View};
use keyway_test_faults::{self as faults, Fault};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The faults of ops that the suite must detect from their samples alone.
pub(crate) const FAULTS: [Fault; 12] = [
    Fault::of_ops("plugin_op_wrong", &["plug_softsign"], "an op's f32 kernel is not what its reference says"),
    Fault::of_ops(
        "plugin_op_of_1000",
        &["plug_softsign"],
        "an op leaves what comes after 1,000 elements at 0",
    ),
    Fault::of_ops(
        "plugin_op_strides",
        &["plug_sum_diff"],
        "an op without a reference reads strided arguments as row-major",
    ),
    Fault::of_ops(
        "plugin_op_gradient",
        &["plug_softsign"],
        "the backward op of a plugin's op gives twice the gradient",
    ),
    Fault::of_ops(
        "plugin_op_gradient_f32",
        &["plug_softsign"],
        "the backward op of a plugin's op is wrong in f32 alone",
    ),
    Fault::of_ops(
        "plugin_op_in_place",
        &["plug_softsign"],
        "an op writes in two passes, so that its result in its argument's place is wrong",
    ),
    Fault::of_ops("plugin_op_race", &["plug_softsign"], "an op keeps what it works on in a static"),
    Fault::of_ops("plugin_op_leak", &["plug_softsign"], "an op never frees its scratch memory"),
    Fault::of_ops(
        "plugin_op_unsteady",
        &["plug_softsign"],
        "an op's last bit depends on how often it was called",
    ),
    Fault::of_ops(
        "plugin_op_kernel",
        &["plug_scale_add"],
        "the kernel of an op is not what its decomposition gives",
    ),
    Fault::of_ops("plugin_op_late_refusal", &["plug_scale_add"], "a kernel writes, and refuses then"),
    Fault::of_ops(
        "plugin_op_never_called",
        &["plug_scale_add"],
        "a kernel refuses every call, and the decomposition serves",
    ),
];

/// Applies the faults that need more than another formula; returns whether one of them was active.
pub(crate) fn softsign<T: Real>(call: &Call<'_>, x: &View<'_, T>) -> Result<bool, Error> {
    static SCRATCH: Mutex<Vec<f64>> = Mutex::new(Vec::new());
    static ODD: AtomicBool = AtomicBool::new(false);
    let scratch = || SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let softsign = |x: T| x / (T::ONE + x.abs());
    match faults::chosen() {
        "plugin_op_in_place" => {
            let mut out = call.out::<T>(0)?;
            out.assign(x.iter());
            if call.tensor(0)?.data_ptr() == call.output(0)?.data_ptr() {
                out.assign(x.iter().map(softsign));
            }
            out.assign(x.iter().map(softsign));
        }
        "plugin_op_race" => {
            let values: Vec<f64> = x.iter().map(|x| softsign(x).to_f64()).collect();
            *scratch() = values;
            std::thread::sleep(Duration::from_millis(1));
            let values = scratch().clone();
            call.out::<T>(0)?.assign(values.into_iter().chain(std::iter::repeat(0.0)).map(T::from_f64));
        }
        "plugin_op_leak" => {
            let kept: Vec<T> = x.iter().collect();
            call.out::<T>(0)?.assign(kept.leak().iter().map(|x| softsign(*x)));
        }
        "plugin_op_unsteady" => {
            // The ULP of 1.
            let ulp = if T::dtype() == dtype::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let nudge = if ODD.fetch_xor(true, Ordering::Relaxed) { T::from_f64(1.0 + ulp) } else { T::ONE };
            call.out::<T>(0)?.assign(x.iter().map(|x| softsign(x) * nudge));
        }
        _ => return Ok(false),
    }
    Ok(true)
}
