//! Minimum-cost labelling of a graph with two labels, as a minimum cut.
//!
//! Every node has a cost for each label and every pair of nodes one for each combination. If no pair is cheaper with
//! different labels than with equal ones (submodular costs), a minimum s-t cut is the exact minimum: V. Kolmogorov and R.
//! Zabih, "What Energy Functions Can Be Minimized via Graph Cuts?", 2004, section 4. The cut is computed as a maximum flow
//! by E. A. Dinic's algorithm, 1970. Costs are integers, so that the result does not depend on rounding.

use std::collections::VecDeque;

/// The cost of a pair of nodes: `costs[label of from][label of to]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) costs: [[i64; 2]; 2],
}

/// A labelling problem: nodes with the cost of each label, and pairs of nodes.
#[derive(Clone, Default, Debug)]
pub(super) struct Problem {
    pub(super) nodes: Vec<[i64; 2]>,
    pub(super) pairs: Vec<Pair>,
}

impl Problem {
    /// The label of each node, 0 or 1, with the minimum total cost. If the costs of a pair are not submodular, which
    /// measurement noise can cause, the cost of disagreement is raised until they are.
    pub(super) fn solve(&self) -> Vec<usize> {
        let mut single = self.nodes.clone();
        let (source, sink) = (single.len(), single.len() + 1);
        let mut network = Network::new(single.len() + 2);
        for Pair { from, to, costs: [[a, b], [c, d]] } in &self.pairs {
            // a + (c - a) [from = 1] + (d - c) [to = 1] + (b + c - a - d) [from = 0 and to = 1]
            single[*from][1] += c - a;
            single[*to][1] += d - c;
            network.connect(*from, *to, (b + c - a - d).max(0));
        }
        for (node, [zero, one]) in single.into_iter().enumerate() {
            network.connect(source, node, (one - zero).max(0));
            network.connect(node, sink, (zero - one).max(0));
        }
        network.saturate(source, sink);
        let levels = network.levels(source);
        levels[..self.nodes.len()].iter().map(|level| usize::from(level.is_none())).collect()
    }
}

struct Edge {
    to: usize,
    room: i64,
}

/// A flow network; edge `i ^ 1` is the reverse of edge `i`.
struct Network {
    edges: Vec<Edge>,
    leaving: Vec<Vec<usize>>,
}

impl Network {
    fn new(nodes: usize) -> Network {
        Network { edges: Vec::new(), leaving: vec![Vec::new(); nodes] }
    }

    fn connect(&mut self, from: usize, to: usize, capacity: i64) {
        if capacity > 0 {
            self.leaving[from].push(self.edges.len());
            self.edges.push(Edge { to, room: capacity });
            self.leaving[to].push(self.edges.len());
            self.edges.push(Edge { to: from, room: 0 });
        }
    }

    /// The BFS level of each node over edges with residual capacity; `None` for unreachable nodes.
    fn levels(&self, source: usize) -> Vec<Option<usize>> {
        let mut levels = vec![None; self.leaving.len()];
        levels[source] = Some(0);
        let mut queue = VecDeque::from([(source, 0)]);
        while let Some((node, level)) = queue.pop_front() {
            for Edge { to, room } in self.leaving[node].iter().map(|&edge| &self.edges[edge]) {
                if *room > 0 && levels[*to].is_none() {
                    levels[*to] = Some(level + 1);
                    queue.push_back((*to, level + 1));
                }
            }
        }
        levels
    }

    /// Computes a maximum flow from source to sink.
    fn saturate(&mut self, source: usize, sink: usize) {
        loop {
            let levels = self.levels(source);
            if levels[sink].is_none() {
                return;
            }
            let mut next = vec![0; self.leaving.len()];
            while self.augment(source, sink, &levels, &mut next) {}
        }
    }

    /// Augments the flow along one path of increasing levels; `false` if there is none. Iterative, since networks may be deep.
    fn augment(&mut self, source: usize, sink: usize, levels: &[Option<usize>], next: &mut [usize]) -> bool {
        let (mut path, mut node) = (Vec::new(), source);
        while node != sink {
            let edge = self.leaving[node].get(next[node]).copied();
            let onward = edge.filter(|&edge| {
                let Edge { to, room } = &self.edges[edge];
                *room > 0 && levels[*to] == levels[node].map(|level| level + 1)
            });
            if let Some(edge) = onward {
                path.push(edge);
                node = self.edges[edge].to;
            } else if edge.is_some() {
                next[node] += 1;
            } else if let Some(last) = path.pop() {
                node = self.edges[last ^ 1].to;
                next[node] += 1;
            } else {
                return false;
            }
        }
        let most = path.iter().map(|&edge| self.edges[edge].room).min().unwrap_or(0);
        for edge in path {
            self.edges[edge].room -= most;
            self.edges[edge ^ 1].room += most;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(problem: &Problem, labels: &[usize]) -> i64 {
        let nodes: i64 = std::iter::zip(&problem.nodes, labels).map(|(costs, &label)| costs[label]).sum();
        let pairs = problem.pairs.iter().map(|pair| pair.costs[labels[pair.from]][labels[pair.to]]);
        nodes + pairs.sum::<i64>()
    }

    /// A chain of nodes with this conversion cost between neighbours of different labels.
    fn chain(nodes: &[[i64; 2]], conversion: i64) -> Problem {
        let costs = [[0, conversion], [conversion, 0]];
        let pairs = (1..nodes.len()).map(|to| Pair { from: to - 1, to, costs }).collect();
        Problem { nodes: nodes.to_vec(), pairs }
    }

    #[test]
    fn a_chain_converts_where_that_costs_less_than_it_gains() {
        // The node in the middle would gain 4 but pay for two conversions.
        let nodes = [[1, 9], [5, 1], [1, 9]];
        assert_eq!(chain(&nodes, 3).solve(), [0, 0, 0]);
        assert_eq!(chain(&nodes, 1).solve(), [0, 1, 0]);
        // A single conversion serves the two nodes at the end.
        assert_eq!(chain(&[[1, 9], [5, 1], [5, 1]], 3).solve(), [0, 1, 1]);
        assert_eq!(chain(&[], 3).solve(), [0; 0]);
    }

    #[test]
    fn a_shortcut_is_converted_once_or_the_branch_follows_it() {
        // Node 0 feeds 1 and 2, like the shortcut of a residual block: by itself, node 1 gains 5 and pays 2 * 3.
        let costs = [[0, 3], [3, 0]];
        let pairs = [(0, 1), (0, 2), (1, 2)].map(|(from, to)| Pair { from, to, costs }).to_vec();
        let problem = |last: [i64; 2]| Problem { nodes: vec![[0, 9], [5, 0], last], pairs: pairs.clone() };
        assert_eq!(problem([0, 0]).solve(), [0, 0, 0]);
        assert_eq!(problem([2, 0]).solve(), [0, 1, 1], "6 for both conversions, 7 without");
        assert_eq!(problem([0, 8]).solve(), [0, 0, 0]);
    }

    #[test]
    fn directions_may_differ_and_labels_be_tied() {
        let tied = 1_000;
        let pair =
            |costs| Problem { nodes: vec![[4, 0], [0, 3]], pairs: vec![Pair { from: 0, to: 1, costs }] };
        assert_eq!(pair([[0, 1], [9, 0]]).solve(), [1, 1], "from 1 to 0 costs more than the 3");
        assert_eq!(pair([[0, 9], [1, 0]]).solve(), [1, 0]);
        assert_eq!(pair([[0, tied], [tied, 0]]).solve(), [1, 1], "the lesser of 4 and 3");
    }

    #[test]
    fn random_graphs_have_the_cost_of_the_best_of_all_labellings() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for round in 0..400 {
            let count = 2 + (round % 9);
            let nodes: Vec<[i64; 2]> = (0..count).map(|_| [below(20) as i64, below(20) as i64]).collect();
            let pairs = (0..below(3 * count as u64) as usize)
                .map(|_| {
                    let (from, to) = (below(count as u64) as usize, below(count as u64) as usize);
                    let [a, d, b] = [below(6), below(6), below(12)].map(|value| value as i64);
                    // Submodular by construction: disagreement costs at least as much as agreement.
                    let c = (a + d - b).max(0) + below(5) as i64;
                    Pair { from, to, costs: [[a, b], [c, d]] }
                })
                .filter(|pair| pair.from != pair.to)
                .collect();
            let problem = Problem { nodes, pairs };
            let all = (0..1usize << count).map(|bits| (0..count).map(|i| bits >> i & 1).collect::<Vec<_>>());
            let best = all.map(|labels| cost(&problem, &labels)).min().unwrap();
            assert_eq!(cost(&problem, &problem.solve()), best, "{problem:?}");
        }
    }

    #[test]
    fn deep_nets_take_no_stack() {
        let nodes: Vec<[i64; 2]> =
            (0..20_000).map(|i| [i64::from(i % 7 == 0), i64::from(i % 5 == 0)]).collect();
        let labels = chain(&nodes, 100).solve();
        assert!(labels.iter().all(|label| *label == labels[0]));
    }
}
