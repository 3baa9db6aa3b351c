//! Numeric values of options.

/// A seed.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected an integer from 0 to {}", u64::MAX))
}

/// A time relative to another, with three significant digits: `0.333`, `1.5`, `120`.
pub fn ratio(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-12).log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn ratios_have_three_digits() {
        let texts = [0.6, 1.0, 1.0 / 3.0, 0.1 + 0.2, 1.5, 999.6, 0.001].map(ratio);
        assert_eq!(texts, ["0.6", "1", "0.333", "0.3", "1.5", "1000", "0.001"]);
    }
}
