//! Coverage of a library by a run: "as expected" means little for a library that refuses most cases.

use crate::runner::Kernels;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The percentage of refused cases from which a verdict has a reservation.
const MUCH: usize = 10;

/// Coverage of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The kernels by device and layout.
    pub kernels: Vec<Kernels>,
    /// Cases that the library ran, or should have run.
    pub judged: usize,
    /// Cases that it refused.
    pub refused: usize,
    /// The number of cases that fail as listed in the known failures.
    pub known: usize,
}

impl Coverage {
    /// The percentage of refused cases among the refused and judged ones.
    pub fn refused_percent(&self) -> usize {
        (self.refused * 100).div_ceil((self.refused + self.judged).max(1))
    }

    /// The number of kernels that ran a call, and of registered ones.
    pub fn reached(&self) -> (usize, usize) {
        let sum = |of: fn(&Kernels) -> usize| self.kernels.iter().map(of).sum();
        (sum(|k| k.reached), sum(|k| k.registered))
    }

    /// Whether the library runs all that it registers, and nearly all cases.
    pub fn is_whole(&self) -> bool {
        let (reached, registered) = self.reached();
        reached == registered && self.known == 0 && self.refused_percent() < MUCH
    }

    /// `cpu, strided and channels_last: 79 of 79 kernels reached, 12 cases (1 %) refused`.
    pub fn text(&self) -> String {
        let names = |of: fn(&Kernels) -> &str| {
            let all: BTreeSet<&str> = self.kernels.iter().map(of).collect();
            all.into_iter().collect::<Vec<_>>().join(" and ")
        };
        let (devices, layouts) = (names(|k| &k.device), names(|k| &k.layout));
        let (reached, registered) = self.reached();
        if registered == 0 {
            return "no kernel of it is in use; `keyway backend list` shows kernels that are left out"
                .to_string();
        }
        let group = super::counts::grouped;
        let mut text =
            format!("{devices}, {layouts}: {} of {} kernels reached", group(reached), group(registered));
        match self.refused {
            0 => {}
            1 => text += &format!(", 1 case ({} %) refused", self.refused_percent()),
            refused => text += &format!(", {} cases ({} %) refused", group(refused), self.refused_percent()),
        }
        text
    }
}

/// The draws of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draws {
    /// The seed.
    pub seed: u64,
    /// Cases that were drawn and run.
    pub cases: usize,
    /// The number of cases omitted for lack of time.
    pub left_out: usize,
    /// The command that draws the same calls.
    pub again: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(layout: &str, registered: usize, reached: usize) -> Kernels {
        Kernels { device: "cpu".to_string(), layout: layout.to_string(), registered, reached }
    }

    #[test]
    fn what_refuses_most_or_is_not_reached_is_no_whole() {
        let all = Coverage {
            kernels: vec![kernels("channels_last", 9, 9), kernels("strided", 1070, 1070)],
            judged: 9000,
            refused: 90,
            known: 0,
        };
        assert!(all.is_whole());
        let text = "cpu, channels_last and strided: 1,079 of 1,079 kernels reached, 90 cases (1 %) refused";
        assert_eq!(all.text(), text);
        assert!(!Coverage { refused: 13_500, ..all.clone() }.is_whole());
        assert_eq!(Coverage { refused: 13_500, ..all.clone() }.refused_percent(), 60);
        assert!(!Coverage { known: 1, ..all.clone() }.is_whole());
        let unreached = Coverage { kernels: vec![kernels("strided", 79, 78)], refused: 0, ..all };
        assert!(!unreached.is_whole());
        assert_eq!(unreached.text(), "cpu, strided: 78 of 79 kernels reached");
    }
}
