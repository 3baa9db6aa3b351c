//! Suggestions for misspelt names.

use keyway_dispatcher::registry::edit_distance;

/// The known name with the smallest edit distance from `got`, if that is at most 2 or a third of its length.
pub fn nearest<'a>(got: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = |name: &&str| edit_distance(got, name);
    let best = known.iter().copied().min_by_key(far)?;
    (edit_distance(got, best) <= (got.chars().count() / 3).max(2)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let known = ["sizes", "dtype", "fill"];
        for (got, expected) in
            [("fil", Some("fill")), ("dtyp", Some("dtype")), ("size", Some("sizes")), ("comment", None)]
        {
            assert_eq!(nearest(got, &known), expected, "{got}");
        }
    }
}
