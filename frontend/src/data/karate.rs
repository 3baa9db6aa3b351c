//! Zachary's karate club: the graph of social ties between its 34 members, and the faction of each after the split.
//!
//! From W. W. Zachary, "An information flow model for conflict and fission in small groups", Journal of Anthropological
//! Research 33 (1977), pages 452 to 473: the ties of its first matrix without their weights, members counted from 0, and the
//! club that each joined after the split. They are facts that were published there, and carry no licence of their own.

/// A graph whose edges have no direction, with a class for each node.
///
/// ```
/// use keyway::data::karate::Graph;
/// let triangle = Graph { nodes: 3, edges: vec![[0, 1], [1, 2], [0, 2]], classes: vec![0, 0, 1] };
/// assert_eq!((triangle.nodes, triangle.edges.len()), (3, triangle.classes.len()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Number of nodes.
    pub nodes: usize,
    /// The nodes at the ends of each edge, the lower first; each edge once.
    pub edges: Vec<[usize; 2]>,
    /// The class of each node.
    pub classes: Vec<usize>,
}

/// The instructor's node, of class 0.
pub const INSTRUCTOR: usize = 0;
/// The officer's node, of class 1.
pub const OFFICER: usize = 33;

/// The neighbours of each member with higher indices.
const TIES: [&[usize]; 34] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32],
    &[7, 12, 13],
    &[6, 10],
    &[6, 10, 16],
    &[16],
    &[],
    &[30, 32, 33],
    &[33],
    &[],
    &[],
    &[],
    &[33],
    &[32, 33],
    &[32, 33],
    &[],
    &[],
    &[32, 33],
    &[33],
    &[32, 33],
    &[],
    &[32, 33],
    &[25, 27, 29, 32, 33],
    &[25, 27, 31],
    &[31],
    &[29, 33],
    &[33],
    &[31, 33],
    &[32, 33],
    &[32, 33],
    &[32, 33],
    &[33],
    &[],
];

/// The members who joined the instructor's club.
const WITH_INSTRUCTOR: [usize; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// The club: 34 nodes, 78 edges, two classes.
///
/// ```
/// let club = keyway::data::karate_club();
/// assert_eq!((club.nodes, club.edges.len()), (34, 78));
/// ```
pub fn karate_club() -> Graph {
    let edges = TIES.iter().enumerate().flat_map(|(a, ties)| ties.iter().map(move |&b| [a, b])).collect();
    let classes = (0..TIES.len()).map(|node| usize::from(!WITH_INSTRUCTOR.contains(&node))).collect();
    Graph { nodes: TIES.len(), edges, classes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_club_is_as_it_was_published() {
        let club = karate_club();
        assert!(club.edges.iter().all(|[a, b]| a < b && *b < club.nodes));
        assert_eq!(club.classes.iter().sum::<usize>(), 17);
        assert_eq!((club.classes[INSTRUCTOR], club.classes[OFFICER]), (0, 1));
        let degree = |node| club.edges.iter().filter(|edge| edge.contains(&node)).count();
        assert_eq!([0, 1, 2, 32, 33].map(degree), [16, 9, 10, 12, 17]);
        assert_eq!((0..34).filter(|&node| degree(node) == 1).collect::<Vec<_>>(), [11]);
    }
}
