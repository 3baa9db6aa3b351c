//! Reports about cases that run for long, and the end of a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The interval of reports about a case that is still running.
pub const LONG: Duration = Duration::from_secs(10);

/// Called with the id of a case, or `loading the backend`, that is still running, and its duration so far, each time that
/// another [`LONG`] has passed.
pub type Running<'a> = &'a (dyn Fn(&str, Duration) + Sync);

/// Ends a worker's work early, and reports it while it takes long.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) stop: &'a AtomicBool,
    pub(super) running: Running<'a>,
    /// The interval of reports.
    pub(super) every: Duration,
}

impl Watch<'_> {
    /// Returns the question whether to end the work of this name, asked every few milliseconds.
    pub(super) fn over<'b>(&'b self, what: &'b str) -> impl Fn() -> bool + 'b {
        let (begun, reported) = (Instant::now(), AtomicU64::new(0));
        move || {
            let time = begun.elapsed();
            let count = (time.as_nanos() / self.every.as_nanos()) as u64;
            if reported.swap(count, Ordering::Relaxed) < count {
                (self.running)(what, time);
            }
            self.stop.load(Ordering::Relaxed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn work_is_reported_at_each_interval_until_it_is_ended() {
        let (stop, every) = (AtomicBool::new(false), Duration::from_millis(20));
        let reports = Mutex::new(Vec::new());
        let running = |what: &str, time: Duration| reports.lock().unwrap().push((what.to_string(), time));
        let watch = Watch { stop: &stop, running: &running, every };
        let over = watch.over("values/add/f32/0");
        assert!(!over());
        while reports.lock().unwrap().len() < 2 {
            assert!(!over());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(over());
        let reports = reports.lock().unwrap();
        assert!(reports.iter().all(|(what, time)| what == "values/add/f32/0" && *time >= every));
        assert!(reports[1].1 - reports[0].1 >= every / 4, "{reports:?}");
    }
}
