//! Validates the times that a plugin declares for ops in memory formats and layouts.

use super::contents::text;
use keyway_sdk::abi::preference::RawPreference;
use keyway_sdk::author::preference::{MAX_COST, MIN_COST};

/// The reason why a declaration has no effect; `None` if it has one. It affects planning alone, so that the plugin is used
/// without it. Names that no plugin provides are reported once all plugins are loaded, by
/// [`unreached`](crate::registry::unreached).
pub(crate) fn trouble(preferences: &[&RawPreference], index: usize) -> Option<String> {
    let key = |p: &RawPreference| [p.op, p.device, p.format].map(text);
    let ([op, device, format], cost) = (key(preferences[index]), preferences[index].cost);
    if ["contiguous", "strided"].contains(&format) {
        return Some(format!(
            "format `{format}` declared for `{op}` on `{device}`: costs are relative to row-major order, which has none itself"
        ));
    }
    if format.is_empty() || format.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some(format!(
            "format `{format}` declared for `{op}` on `{device}`: expected `channels_last` or the name of a layout"
        ));
    }
    if !(MIN_COST..=MAX_COST).contains(&cost) {
        return Some(format!(
            "cost {cost:e} declared for `{op}` on `{device}` in `{format}`: expected {MIN_COST} to {MAX_COST}, the time relative \
             to row-major order"
        ));
    }
    let first = preferences[..index].iter().find(|other| key(other) == [op, device, format])?;
    Some(format!(
        "a second cost, {cost}, declared for `{op}` on `{device}` in `{format}`: the first, {}, is used",
        first.cost
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_sdk::abi::RawStr;

    fn declared(format: &'static str, cost: f64) -> RawPreference {
        RawPreference {
            struct_size: size_of::<RawPreference>() as u32,
            reserved: 0,
            op: RawStr::new("conv"),
            device: RawStr::new("cpu"),
            format: RawStr::new(format),
            cost,
        }
    }

    #[test]
    fn costs_and_formats_are_checked() {
        let sound = declared("channels_last", 0.6);
        for cost in [MIN_COST, 1.0, MAX_COST] {
            assert_eq!(trouble(&[&sound, &declared("example.org/nchw16c", cost)], 1), None);
        }
        for (wrong, part) in [
            (
                declared("test/a", f64::NAN),
                "cost NaN declared for `conv` on `cpu` in `test/a`: expected 0.001 to 1000",
            ),
            (declared("test/a", f64::INFINITY), "cost inf declared"),
            (declared("test/a", 0.0), "cost 0e0 declared"),
            (declared("test/a", -0.5), "cost -5e-1 declared"),
            (declared("test/a", 1e-300), "cost 1e-300 declared"),
            (declared("contiguous", 1.0), "costs are relative to row-major order"),
            (declared("strided", 0.5), "format `strided` declared for `conv` on `cpu`"),
            (declared("test /a", 0.5), "expected `channels_last` or the name of a layout"),
            (
                declared("channels_last", 0.5),
                "a second cost, 0.5, declared for `conv` on `cpu` in `channels_last`: the first, 0.6,",
            ),
        ] {
            assert_eq!(trouble(&[&sound, &wrong], 0), None);
            let reason = trouble(&[&sound, &wrong], 1).expect("a reason");
            assert!(reason.contains(part), "{reason}");
        }
    }
}
