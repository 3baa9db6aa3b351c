//! The progress of a training: a bar on a terminal, otherwise an occasional line, on standard error.

use crate::screen;
use indicatif::ProgressBar;

/// Epochs between two lines without a terminal.
const LINE_EVERY: usize = 10;

/// The progress of a training.
pub struct Progress {
    epochs: usize,
    /// The bar; `None` if standard error is not a terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts after `done` epochs of an earlier run.
    pub fn new(epochs: usize, done: usize) -> Progress {
        let bar = screen::bar("epoch {pos}/{len}");
        if let Some(bar) = &bar {
            bar.set_length(epochs as u64);
            // The remaining time is estimated from the pace from here on.
            bar.set_position(done as u64);
            bar.reset_eta();
        }
        Progress { epochs, bar }
    }

    /// Updates the progress after an epoch, counted from 1.
    pub fn epoch(&mut self, epoch: usize, loss: f64) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("loss {loss:.4}"));
                bar.set_position(epoch as u64);
            }
            None if epoch.is_multiple_of(LINE_EVERY) || epoch == self.epochs => {
                let width = self.epochs.to_string().len();
                screen::note(&format!("epoch {epoch:width$}/{}  loss {loss:.4}", self.epochs));
            }
            None => {}
        }
    }

    /// Clears the bar after the last epoch.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    /// Stops early; the bar stays on the screen.
    pub fn abandon(self) {
        if let Some(bar) = self.bar {
            bar.abandon();
        }
    }
}
