//! Positions of the boxes of a picture: in layers by distance from the outputs, within a layer close to their neighbours (K.
//! Sugiyama and others, "Methods for visual understanding of hierarchical system structures", 1981).

use super::Drawn;

/// The height of a box; all lengths are in pixels.
pub(super) const HEIGHT: i64 = 38;
const ROW: i64 = 74;
const GAP: i64 = 18;
const MARGIN: i64 = 16;
/// Width of a letter of the font.
const LETTER: i64 = 8;
/// Number of sweeps that order the rows by their neighbours.
const SWEEPS: usize = 8;
/// The maximum number of rows through which an edge is routed around boxes; a longer one is straight.
const LED: usize = 40;

/// The size of a picture, the position of each box, and for each edge the points between the boxes where it crosses a row, from
/// the top down.
pub(super) struct Layout {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) places: Vec<Place>,
    pub(super) passes: Vec<Vec<Vec<Place>>>,
}

/// The middle of a box's upper side.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
}

pub(super) fn of(boxes: &[Drawn]) -> Layout {
    let depth = depths(boxes);
    let deepest = depth.iter().copied().max().unwrap_or(0);
    let y_of = |depth: usize| MARGIN + (deepest - depth) as i64 * ROW;
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); deepest + 1];
    (0..boxes.len()).for_each(|i| rows[depth[i]].push(i));
    let width_of = |node: &Drawn| {
        let letters = node.name.chars().count().max(node.note.chars().count());
        letters as i64 * LETTER + 2 * GAP
    };
    let place = |(i, node)| Place { x: 0, y: y_of(depth[i]), width: width_of(node) };
    let mut places: Vec<Place> = boxes.iter().enumerate().map(place).collect();
    // The points where edges cross a row follow the boxes.
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); boxes.len()];
    let mut passing: Vec<Vec<Vec<usize>>> = Vec::new();
    for (i, node) in boxes.iter().enumerate() {
        let led = |&next: &usize| {
            let between = depth[i] + 1..depth[next];
            let first = places.len();
            if between.len() <= LED {
                for row in between {
                    rows[row].push(places.len());
                    places.push(Place { x: 0, y: y_of(row), width: 0 });
                }
            }
            let way: Vec<usize> = std::iter::once(i).chain(first..places.len()).chain([next]).collect();
            neighbours.resize(places.len(), Vec::new());
            for pair in way.windows(2) {
                neighbours[pair[0]].push(pair[1]);
                neighbours[pair[1]].push(pair[0]);
            }
            (first..places.len()).rev().collect()
        };
        passing.push(node.next.iter().map(led).collect());
    }
    for sweep in 0..SWEEPS {
        for at in 0..rows.len() {
            let at = if sweep % 2 == 0 { at } else { rows.len() - 1 - at };
            arrange(&mut rows[at], &neighbours, &mut places);
        }
    }
    let left = places.iter().map(|p| p.x - p.width / 2).min().unwrap_or(0);
    places.iter_mut().for_each(|p| p.x += MARGIN - left);
    let width = places.iter().map(|p| p.x + p.width / 2).max().unwrap_or(0) + MARGIN;
    let placed = |way: &Vec<usize>| way.iter().map(|&at| places[at].clone()).collect();
    let passes = passing.iter().map(|ways| ways.iter().map(placed).collect()).collect();
    places.truncate(boxes.len());
    Layout { width, height: 2 * MARGIN + deepest as i64 * ROW + HEIGHT, places, passes }
}

/// The longest way of each box from an output, so that every edge leads to another row.
fn depths(boxes: &[Drawn]) -> Vec<usize> {
    let mut users = vec![0usize; boxes.len()];
    boxes.iter().flat_map(|b| &b.next).for_each(|&next| users[next] += 1);
    let mut depth = vec![0; boxes.len()];
    let mut ready: Vec<usize> = (0..boxes.len()).filter(|&i| users[i] == 0).collect();
    while let Some(i) = ready.pop() {
        for &next in &boxes[i].next {
            depth[next] = depth[next].max(depth[i] + 1);
            users[next] -= 1;
            if users[next] == 0 {
                ready.push(next);
            }
        }
    }
    depth
}

/// Orders a row by the barycentres of its neighbours, and moves each box as close to its barycentre as the others allow.
fn arrange(row: &mut [usize], neighbours: &[Vec<usize>], places: &mut [Place]) {
    let middle = |i: usize, places: &[Place]| match neighbours[i].as_slice() {
        [] => places[i].x,
        near => near.iter().map(|&n| places[n].x).sum::<i64>() / near.len() as i64,
    };
    row.sort_by_key(|&i| middle(i, places));
    let wanted: Vec<i64> = row.iter().map(|&i| middle(i, places)).collect();
    let mut end = i64::MIN / 2;
    for (&i, &x) in row.iter().zip(&wanted) {
        let half = places[i].width / 2;
        places[i].x = x.max(end + GAP + half);
        end = places[i].x + half;
    }
    // Subtracts the mean shift of the row to the right.
    let pushed = row.iter().zip(&wanted).map(|(&i, &x)| places[i].x - x).sum::<i64>();
    let back = pushed / row.len().max(1) as i64;
    row.iter().for_each(|&i| places[i].x -= back);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(next: &[&[usize]]) -> Vec<Drawn> {
        let one = |next: &&[usize]| Drawn {
            name: "op".into(),
            note: "[2, 3]".into(),
            leaf: next.is_empty(),
            next: next.to_vec(),
        };
        next.iter().map(one).collect()
    }

    #[test]
    fn edges_lead_down_and_boxes_do_not_overlap() {
        // A diamond with an edge that passes a row, and a wide row.
        let graph = boxes(&[&[1, 2, 3, 4], &[5, 6], &[5], &[6, 7], &[7, 5], &[8], &[8], &[8], &[]]);
        let Layout { width, height, places, .. } = of(&graph);
        for (i, node) in graph.iter().enumerate() {
            assert!(node.next.iter().all(|&n| places[n].y + HEIGHT < places[i].y), "box {i}");
            let (left, right) = (places[i].x - places[i].width / 2, places[i].x + places[i].width / 2);
            assert!(left >= 0 && right <= width && places[i].y + HEIGHT <= height, "box {i}");
            for (k, other) in places.iter().enumerate().filter(|(k, p)| *k != i && p.y == places[i].y) {
                assert!(
                    other.x - other.width / 2 >= right || other.x + other.width / 2 <= left,
                    "{i} and {k}"
                );
            }
        }
    }

    #[test]
    fn long_edges_go_around_boxes() {
        // The residual connection of box 0 and box 3, next to a chain.
        let graph = boxes(&[&[1, 3], &[2], &[3], &[4], &[]]);
        let Layout { places, passes, .. } = of(&graph);
        let long = &passes[0][1];
        assert_eq!(long.iter().map(|p| p.y).collect::<Vec<_>>(), [places[2].y, places[1].y]);
        for pass in long {
            let beside = |p: &Place| p.y != pass.y || (p.x - pass.x).abs() > p.width / 2;
            assert!(places.iter().all(beside));
        }
        assert!(passes[0][0].is_empty() && passes[3][0].is_empty());
    }

    #[test]
    fn a_chain_is_a_column() {
        let Layout { places, .. } = of(&boxes(&[&[1], &[2], &[3], &[]]));
        assert!(places.iter().all(|p| p.x == places[0].x));
    }

    #[test]
    fn the_largest_graph_is_drawn() {
        // A chain with an edge over every fourth box, as a residual net has.
        let count = super::super::MOST;
        let next = |i: usize| [i + 1, i + 4].into_iter().take(1 + usize::from(i.is_multiple_of(4)));
        let next: Vec<Vec<usize>> = (0..count).map(|i| next(i).filter(|&n| n < count).collect()).collect();
        let next: Vec<&[usize]> = next.iter().map(Vec::as_slice).collect();
        let Layout { height, places, .. } = of(&boxes(&next));
        assert_eq!((places.len(), places[0].y > places[count - 1].y), (count, true));
        assert!(height >= count as i64 * HEIGHT);
    }
}
