//! The libraries that a search refused, did not find or shadowed, as one sentence for a program that lacks a backend.

use super::discovery::{Candidate, Discovery, Verdict};
use super::error::LoadError;
use super::search::{SearchOrigin, Searched};

/// The maximum number of clauses shown; `keyway backend list` shows all.
const SHOWN: usize = 3;

impl Discovery {
    /// The libraries that were refused or are shadowed by another of the same name, and the user-named folders without a
    /// library, with the reasons, as one sentence without its end; `None` if there are none.
    pub fn lacking(&self) -> Option<String> {
        let mut clauses: Vec<String> = Vec::new();
        let mut add = |clause: String| {
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        };
        self.candidates.iter().filter_map(refused).for_each(&mut add);
        self.searched.iter().filter_map(without).for_each(&mut add);
        for used in self.chosen() {
            let by = format!("is shadowed by {}", used.found_as.display());
            self.shadowed(used)
                .map(|other| {
                    format!("{} in {} {by}", other.title().unwrap_or_default(), other.found_as.display())
                })
                .for_each(&mut add);
        }
        if clauses.is_empty() {
            let count = self.searched.len();
            let nothing = || {
                format!("None of the {count} searched paths has a library; `keyway backend list` shows them")
            };
            return self.candidates.is_empty().then(nothing);
        }
        let more = clauses.len().saturating_sub(SHOWN);
        clauses.truncate(SHOWN);
        if more > 0 {
            clauses.push(format!("and {more} more"));
        }
        Some(format!(
            "Refused, shadowed or not found: {} (`keyway backend list` shows all)",
            clauses.join("; ")
        ))
    }
}

/// The reason why a library is not used; `None` for a duplicate, which does no harm.
fn refused(candidate: &Candidate) -> Option<String> {
    match &candidate.verdict {
        // Reported below, with its path.
        Verdict::Rejected(LoadError::NotFound { .. }) if candidate.origin == SearchOrigin::Explicit => None,
        Verdict::Rejected(LoadError::Duplicate { .. }) => None,
        Verdict::Rejected(error) => Some(format!("{}: {error}", candidate.found_as.display())),
        _ => None,
    }
}

/// The reason why a path that the user named yielded no library.
fn without(searched: &Searched) -> Option<String> {
    let named = matches!(searched.origin, SearchOrigin::Explicit | SearchOrigin::Environment);
    if searched.files > 0 || (!named && searched.skipped.is_none()) {
        return None;
    }
    let why = match &searched.skipped {
        Some(super::Skipped::SearchedBefore) => return None,
        Some(reason) => reason.to_string(),
        None if searched.exists => "it holds no library".to_string(),
        None => "it does not exist".to_string(),
    };
    Some(format!("{} ({}): {why}", searched.path.display(), searched.origin))
}
