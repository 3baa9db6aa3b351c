//! Suggests similar names for one that does not exist, for messages.

use super::table::current;

/// The ops with similar names, the most similar first; at most five.
pub fn near_ops(text: &str) -> Vec<&'static str> {
    let within = |name: &str| name.contains(text) || text.contains(name);
    let mut names: Vec<(usize, usize, &'static str)> = current()
        .ops()
        .map(|rows| (edit_distance(text, rows.op.name), rows.op.name))
        .map(|(letters, name)| (if within(name) { 1 } else { letters }, letters, name))
        .filter(|(rank, _, _)| *rank <= text.len() / 3 + 1)
        .collect();
    names.sort_unstable();
    names.into_iter().take(5).map(|(_, _, name)| name).collect()
}

/// The most similar of these names, ignoring case; `None` if none is similar.
pub(crate) fn nearest_of<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = &text.to_lowercase();
    let ranked = names.into_iter().map(|name| (edit_distance(text, &name.to_lowercase()), name));
    ranked.min().filter(|(letters, _)| *letters <= text.len() / 4 + 1).map(|(_, name)| name)
}

/// The Levenshtein distance of two names.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::edit_distance;

    #[test]
    fn distances_count_changed_letters() {
        assert_eq!(edit_distance("add", "add"), 0);
        assert_eq!(edit_distance("ad", "add"), 1);
        assert_eq!(edit_distance("matmul", "mul"), 3);
        assert_eq!(edit_distance("", "exp"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
