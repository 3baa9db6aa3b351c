//! Where the boxes of a picture go: in rows by their distance from the outputs, in each row near what they are joined to
//! (K. Sugiyama and others, "Methods for visual understanding of hierarchical system structures", 1981).

use super::Drawn;

/// The height of a box; all lengths are in pixels.
pub(super) const HEIGHT: i64 = 38;
const ROW: i64 = 74;
const GAP: i64 = 18;
const MARGIN: i64 = 16;
/// Of a letter of the font.
const LETTER: i64 = 8;
/// How often rows are put in order by their neighbours.
const SWEEPS: usize = 8;

/// A picture's size and the place of each box.
pub(super) struct Layout {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) places: Vec<Place>,
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
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); deepest + 1];
    (0..boxes.len()).for_each(|i| rows[depth[i]].push(i));
    let width_of = |i: usize| {
        let letters = boxes[i].name.chars().count().max(boxes[i].note.chars().count());
        letters as i64 * LETTER + 2 * GAP
    };
    let mut places: Vec<Place> = (0..boxes.len())
        .map(|i| Place { x: 0, y: MARGIN + (deepest - depth[i]) as i64 * ROW, width: width_of(i) })
        .collect();
    let neighbours = joined(boxes);
    for sweep in 0..SWEEPS {
        for at in 0..rows.len() {
            let at = if sweep % 2 == 0 { at } else { rows.len() - 1 - at };
            arrange(&mut rows[at], &neighbours, &mut places);
        }
    }
    let left = places.iter().map(|p| p.x - p.width / 2).min().unwrap_or(0);
    places.iter_mut().for_each(|p| p.x += MARGIN - left);
    let width = places.iter().map(|p| p.x + p.width / 2).max().unwrap_or(0) + MARGIN;
    Layout { width, height: 2 * MARGIN + deepest as i64 * ROW + HEIGHT, places }
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

/// The boxes that each is joined to.
fn joined(boxes: &[Drawn]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); boxes.len()];
    for (i, node) in boxes.iter().enumerate() {
        for &next in &node.next {
            neighbours[i].push(next);
            neighbours[next].push(i);
        }
    }
    neighbours
}

/// Puts a row in the order of the middles of its neighbours, and each box as near to its middle as the others leave room.
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
    // What was pushed to the right on the whole is brought back by the mean.
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
        let Layout { width, height, places } = of(&graph);
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
    fn a_chain_is_a_column() {
        let Layout { places, .. } = of(&boxes(&[&[1], &[2], &[3], &[]]));
        assert!(places.iter().all(|p| p.x == places[0].x));
    }
}
