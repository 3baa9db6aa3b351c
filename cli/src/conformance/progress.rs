//! The progress of a run: a bar on a terminal, otherwise an occasional line, on standard error.

use crate::screen;
use indicatif::ProgressBar;
use keyway_conformance::runner::{self, Finished};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The progress of a run.
pub struct Progress {
    /// The bar; `None` if standard error is not a terminal.
    bar: Option<ProgressBar>,
    failed: AtomicUsize,
}

impl Progress {
    /// Creates the progress before the first case.
    pub fn new() -> Progress {
        Progress { bar: screen::bar("{human_pos}/{human_len}"), failed: AtomicUsize::new(0) }
    }

    /// Updates the progress after a case.
    pub fn step(&self, runner::Progress { done, all }: runner::Progress, finished: &Finished) {
        if finished.outcome.is_failure() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let failed = self.failed.load(Ordering::Relaxed);
        match &self.bar {
            Some(bar) => {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(format!("{failed} failed  {}", finished.case.id));
            }
            // Ten lines in all.
            None if done * 10 / all != (done - 1) * 10 / all => {
                screen::note(&format!("{done}/{all} cases, {failed} failed"));
            }
            None => {}
        }
    }

    /// Reports a case that has run for this time and has not ended.
    pub fn running(&self, what: &str, time: Duration) {
        let text = format!("{what} has been running for {} s", time.as_secs());
        match self.bar.as_ref().filter(|bar| !bar.is_finished()) {
            Some(bar) => bar.set_message(text),
            None => screen::note(&text),
        }
    }

    /// Clears the bar after the last case.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
