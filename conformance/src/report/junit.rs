//! JUnit XML, as build servers read it.

use super::{Report, Row, Status};
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

impl Report {
    /// The report as JUnit XML: a suite for each family.
    pub fn junit(&self) -> String {
        write(self)
    }
}

fn write(report: &Report) -> String {
    let mut junit = Junit::new(format!("keyway conformance {}", report.plugin));
    for family in report.families.keys() {
        let mut suite = TestSuite::new(family.clone());
        suite.add_test_cases(report.cases.iter().filter(|r| r.family == *family).map(case));
        junit.add_test_suite(suite);
    }
    let mut run = TestSuite::new("run");
    let failure = || TestCaseStatus::non_success(NonSuccessKind::Failure);
    let mut say = |name: &str, mut status: TestCaseStatus, message: String| {
        status.set_message(message);
        run.add_test_case(TestCase::new(name, status));
    };
    if report.says_nothing() {
        say("served", failure(), report.nothing_served());
    }
    if report.interrupted {
        let (done, wanted) = (report.cases.len(), report.wanted);
        say("whole", failure(), format!("the run was ended after {done} of {wanted} cases"));
    }
    for case in &report.unused_known {
        say("known failures", failure(), format!("the known failure `{case}` matches no case"));
    }
    if let Some(narrowed) = report.narrowed() {
        say("selection", TestCaseStatus::skipped(), narrowed);
    }
    if !run.test_cases.is_empty() {
        junit.add_test_suite(run);
    }
    junit.to_string().unwrap_or_default()
}

fn case(row: &Row) -> TestCase {
    let reason = row.reason.clone().unwrap_or_default();
    let status = match row.status {
        Status::Passed | Status::ByOthers => TestCaseStatus::success(),
        Status::Failed | Status::Died | Status::NotRun | Status::UnexpectedPass => {
            let kind = match row.status {
                Status::Died | Status::NotRun => NonSuccessKind::Error,
                _ => NonSuccessKind::Failure,
            };
            let mut status = TestCaseStatus::non_success(kind);
            match &row.failure {
                Some(f) => {
                    status.set_message(f.what.clone());
                    status.set_description(format!(
                        "expected {}, got {}\n{}\n{}\n{}",
                        f.expected,
                        f.got,
                        reason,
                        row.call.as_deref().unwrap_or_default(),
                        row.rerun.as_deref().unwrap_or_default(),
                    ));
                }
                None if row.status == Status::UnexpectedPass => {
                    status.set_message(format!("passes, but is listed as a known failure: {reason}"));
                }
                None if row.status == Status::NotRun => {
                    status.set_message(format!("not run: {reason}"));
                }
                None => {
                    status.set_message(reason);
                }
            }
            status
        }
        Status::KnownFailure | Status::Unsupported | Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason);
            status
        }
    };
    let mut case = TestCase::new(row.id.clone(), status);
    case.set_classname(row.op.clone());
    case.set_time(Duration::from_micros(row.micros));
    case
}
