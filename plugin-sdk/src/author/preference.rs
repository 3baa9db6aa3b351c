//! Declared times of ops in memory formats and layouts: `register_preference!`.

use crate::abi::RawStr;
use crate::abi::preference::RawPreference;

/// The least cost that a declaration may have: a thousandth of the time in row-major order.
///
/// ```
/// assert!((keyway_sdk::author::preference::MIN_COST..1.0).contains(&0.6));
/// ```
pub const MIN_COST: f64 = 1e-3;
/// The largest cost that a declaration may have: a thousand times the time in row-major order.
///
/// ```
/// assert!((1.0..keyway_sdk::author::preference::MAX_COST).contains(&1.5));
/// ```
pub const MAX_COST: f64 = 1e3;

/// One `register_preference!`, collected by `inventory` inside this library.
pub struct PreferenceItem(pub RawPreference);
inventory::collect!(PreferenceItem);

/// The table of a declaration.
///
/// # Panics
/// If `cost` is not within [`MIN_COST`] and [`MAX_COST`], or the format is row-major; in a constant this fails the build.
#[doc(hidden)]
pub const fn table(op: &'static str, device: &'static str, format: &'static str, cost: f64) -> RawPreference {
    assert!(
        cost >= MIN_COST && cost <= MAX_COST,
        "the `cost` of `register_preference!` must be a time from 0.001 to 1000, relative to row-major order"
    );
    assert!(
        !equal(format, "contiguous") && !equal(format, "strided"),
        "the `format` of `register_preference!` must not be row-major: costs are relative to it"
    );
    raw(op, device, format, cost)
}

/// Equality of texts in a constant.
const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The table of a declaration that the host checks.
pub(super) const fn raw(
    op: &'static str,
    device: &'static str,
    format: &'static str,
    cost: f64,
) -> RawPreference {
    RawPreference {
        struct_size: size_of::<RawPreference>() as u32,
        reserved: 0,
        op: RawStr::new(op),
        device: RawStr::new(device),
        format: RawStr::new(format),
        cost,
    }
}

/// Declares the time of an op in a memory format or layout, relative to its time in row-major order, so that `keyway plan
/// --costs declared` and `keyway::plan` can choose formats without measurements.
///
/// `format` is `channels_last` or the name of a layout, and this plugin must have a kernel of the op for it on the device:
/// one registered for that format, or for strided tensors if the format is `channels_last`. `cost` is a time ratio without
/// conversions: 0.6 means 40 % less time than in row-major order, 1.5 means 50 % more; it must be from 0.001 to 1000. For a
/// ratio that depends on the hardware found at run time see [`Contents::preference`](crate::author::Contents::preference).
///
/// A second declaration for the same op, device and format has no effect, nor has one whose names no plugin provides; programs
/// warn of both, and `keyway backend list` and the family `claims` of the conformance suite report them. Declarations affect planning alone: calls are dispatched by the layout of their arguments and by priority. If several
/// plugins declare the same op, device and format, the one of the highest priority is used, then the one that was loaded
/// first.
///
/// ```
/// keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "channels_last", cost: 0.6 }
/// ```
///
/// A cost outside of 0.001 to 1000 fails the build, and so does a row-major format:
///
/// ```compile_fail
/// keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "channels_last", cost: 0.0 / 0.0 }
/// ```
///
/// ```compile_fail
/// keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "strided", cost: 0.5 }
/// ```
#[macro_export]
macro_rules! register_preference {
    (op: $op:expr, device: $device:expr, format: $format:expr, cost: $cost:expr $(,)?) => {
        const _: () = {
            const __KEYWAY_PREFERENCE: $crate::__private::RawPreference =
                $crate::__private::preference($op, $device, $format, $cost);
            $crate::__private::inventory::submit! {
                $crate::__private::PreferenceItem(__KEYWAY_PREFERENCE)
            }
        };
    };
}
