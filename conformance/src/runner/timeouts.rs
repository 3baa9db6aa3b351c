//! Time-outs of a run by kernel: a kernel that hangs costs a few time limits, not one for each of its cases.

use std::collections::BTreeMap;

/// Number of time-outs after which the remaining cases of a kernel are not run.
pub const CASES_OF_A_KERNEL: usize = 3;
/// Number of kernels with time-outs after which no further case is run.
pub const KERNELS_OF_A_RUN: usize = 10;

/// The kernels with time-outs, each with the number of its cases that timed out.
#[derive(Debug, Default)]
pub(super) struct Timeouts(BTreeMap<String, usize>);

impl Timeouts {
    /// Counts a time-out of a case of this kernel.
    pub(super) fn add(&mut self, kernel: &str) {
        *self.0.entry(kernel.to_string()).or_default() += 1;
    }

    /// Whether the run ends.
    pub(super) fn end_the_run(&self) -> bool {
        self.0.len() >= KERNELS_OF_A_RUN
    }

    /// The reason why a further case of this kernel is not run; `None` if it is.
    pub(super) fn refusal(&self, kernel: &str) -> Option<String> {
        // The limit and not the count, which differs from run to run: cases of other workers may still be running at the limit.
        if self.0.get(kernel).is_some_and(|count| *count >= CASES_OF_A_KERNEL) {
            return Some(format!("{CASES_OF_A_KERNEL} cases of {kernel} timed out"));
        }
        self.end_the_run()
            .then(|| format!("cases of {KERNELS_OF_A_RUN} different kernels timed out, which ended the run"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_ends_after_three_time_outs_and_the_run_after_those_of_ten_kernels() {
        let mut timeouts = Timeouts::default();
        for _ in 0..CASES_OF_A_KERNEL {
            assert_eq!(timeouts.refusal("kernel relu/f32 on cpu:strided"), None);
            timeouts.add("kernel relu/f32 on cpu:strided");
        }
        let why = "3 cases of kernel relu/f32 on cpu:strided timed out";
        assert_eq!(timeouts.refusal("kernel relu/f32 on cpu:strided").as_deref(), Some(why));
        for other in 1..KERNELS_OF_A_RUN {
            assert!(!timeouts.end_the_run());
            assert_eq!(timeouts.refusal("kernel add/f32 on cpu:strided"), None);
            timeouts.add(&other.to_string());
        }
        assert!(timeouts.end_the_run());
        let ended = "cases of 10 different kernels timed out, which ended the run";
        assert_eq!(timeouts.refusal("kernel add/f32 on cpu:strided").as_deref(), Some(ended));
        assert_eq!(timeouts.refusal("kernel relu/f32 on cpu:strided").as_deref(), Some(why));
    }
}
