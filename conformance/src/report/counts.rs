//! Numbers of cases by status.

use super::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of cases of each status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(pub BTreeMap<String, usize>);

impl Counts {
    pub(super) fn add(&mut self, status: Status) {
        let name = serde_json::to_value(status).ok().and_then(|v| v.as_str().map(str::to_string));
        *self.0.entry(name.unwrap_or_default()).or_default() += 1;
    }

    /// The number of cases of one status.
    pub fn of(&self, status: Status) -> usize {
        let mut one = Counts::default();
        one.add(status);
        one.0.keys().next().and_then(|name| self.0.get(name)).copied().unwrap_or(0)
    }

    /// The number of all cases.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Whether other plugins ran every case that was run: the run is then no evidence about the tested library.
    pub fn is_by_others(&self) -> bool {
        const JUDGED: [Status; 6] = [
            Status::Passed,
            Status::Failed,
            Status::Died,
            Status::NotRun,
            Status::KnownFailure,
            Status::UnexpectedPass,
        ];
        self.of(Status::ByOthers) > 0 && JUDGED.iter().all(|status| self.of(*status) == 0)
    }
}

/// Formats a number with thousands separators.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_ended_in_the_librarys_failure_is_not_others() {
        let counts = |statuses: &[Status]| {
            let mut counts = Counts::default();
            statuses.iter().for_each(|status| counts.add(*status));
            counts
        };
        assert!(counts(&[Status::ByOthers, Status::Unsupported, Status::Skipped]).is_by_others());
        assert!(!counts(&[Status::Unsupported]).is_by_others());
        for judged in [
            Status::Passed,
            Status::Failed,
            Status::Died,
            Status::NotRun,
            Status::KnownFailure,
            Status::UnexpectedPass,
        ] {
            assert!(judged.is_judged() && !counts(&[Status::ByOthers, judged]).is_by_others(), "{judged:?}");
        }
    }
}
