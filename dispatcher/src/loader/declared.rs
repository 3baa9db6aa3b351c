//! Validates the times that a plugin declares for ops in memory formats and layouts.

use super::contents::{bad, text};
use super::error::LoadError;
use keyway_sdk::abi::preference::RawPreference;

/// Checks costs and formats, after the names of each entry. Names that no plugin provides are reported once all plugins are
/// loaded, by [`unreached`](crate::registry::unreached).
pub(super) fn check_preferences(preferences: &[&RawPreference]) -> Result<(), LoadError> {
    let key = |p: &RawPreference| [p.op, p.device, p.format].map(text);
    for (index, preference) in preferences.iter().enumerate() {
        let [op, device, format] = key(preference);
        let wrong = |expected: &str, got: String| Err(bad::<RawPreference>(index, expected, got));
        let cost = preference.cost;
        if !(cost.is_finite() && cost > 0.0) {
            let of = format!("{cost} for `{op}` on `{device}` in `{format}`");
            return wrong("a finite `cost` above 0, the time relative to row-major order", of);
        }
        if ["contiguous", "strided"].contains(&format) {
            let expected = "a `format` other than row-major order, which costs are relative to";
            return wrong(expected, format!("`{format}` for `{op}` on `{device}`"));
        }
        if format.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return wrong("a `format` without white space", format!("`{format}` for `{op}` on `{device}`"));
        }
        if preferences[..index].iter().any(|other| key(other) == [op, device, format]) {
            let of = format!("`{op}` on `{device}` in `{format}` again");
            return wrong("one entry for each op, device and format", of);
        }
    }
    Ok(())
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
        assert!(check_preferences(&[&sound, &declared("example.org/nchw16c", 1e-3)]).is_ok());
        for (wrong, part) in [
            (
                declared("test/a", f64::NAN),
                "a finite `cost` above 0, the time relative to row-major order in",
            ),
            (declared("test/a", f64::INFINITY), "got inf for `conv` on `cpu` in `test/a`"),
            (declared("test/a", 0.0), "got 0 for `conv`"),
            (declared("test/a", -0.5), "got -0.5 for `conv`"),
            (declared("contiguous", 1.0), "other than row-major order"),
            (declared("strided", 0.5), "other than row-major order"),
            (declared("test /a", 0.5), "without white space"),
            (declared("channels_last", 0.5), "one entry for each op, device and format"),
        ] {
            let error = check_preferences(&[&sound, &wrong]).unwrap_err().to_string();
            assert!(error.contains("preferences[1]") && error.contains(part), "{error}");
        }
    }
}
