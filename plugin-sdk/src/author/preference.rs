//! Declared times of ops in memory formats and layouts: `register_preference!`.

use crate::abi::RawStr;
use crate::abi::preference::RawPreference;

/// One `register_preference!`, collected by `inventory` inside this library.
pub struct PreferenceItem(pub RawPreference);
inventory::collect!(PreferenceItem);

/// The table of a declaration.
///
/// # Panics
/// If `cost` is not finite and above 0; in a constant this fails the build.
#[doc(hidden)]
pub const fn table(op: &'static str, device: &'static str, format: &'static str, cost: f64) -> RawPreference {
    assert!(
        cost > 0.0 && cost.is_finite(),
        "the `cost` of `register_preference!` must be finite and above 0"
    );
    raw(op, device, format, cost)
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
/// conversions: 0.6 means 40 % less time than in row-major order, 1.5 means 50 % more; it must be finite and above 0. For a
/// ratio that depends on the hardware found at run time see [`Contents::preference`](crate::author::Contents::preference).
///
/// Declarations affect planning alone: calls are dispatched by the layout of their arguments and by priority. If several
/// plugins declare the same op, device and format, the one of the highest priority is used, then the one that was loaded
/// first.
///
/// ```
/// keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "channels_last", cost: 0.6 }
/// ```
///
/// A cost that is not finite or not above 0 fails the build:
///
/// ```compile_fail
/// keyway_sdk::register_preference! { op: "conv", device: "cpu", format: "channels_last", cost: 0.0 / 0.0 }
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
