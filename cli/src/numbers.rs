//! Numbers as options take them.

/// A number that decides what is drawn.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}
