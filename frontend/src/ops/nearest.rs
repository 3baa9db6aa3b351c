//! Which of the known names somebody may have meant.

/// The known name that differs from `got` in the fewest letters, if these are no more than a third of it, or two.
pub fn nearest<'a>(got: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = |name: &&str| distance(got, name);
    let best = known.iter().copied().min_by_key(far)?;
    (distance(got, best) <= (got.chars().count() / 3).max(2)).then_some(best)
}

/// How many letters must be changed, added or taken away.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut above_left = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let here = (above_left + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            above_left = row[j + 1];
            row[j + 1] = here;
        }
    }
    row[b.len()]
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
