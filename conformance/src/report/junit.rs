//! JUnit XML, as build servers read it.

use super::{Report, Row, Status};
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The report as JUnit XML.
pub fn write(report: &Report) -> String {
    let mut junit = Junit::new(format!("keyway conformance {}", report.plugin));
    for family in report.families.keys() {
        let mut suite = TestSuite::new(family.clone());
        suite.add_test_cases(report.cases.iter().filter(|r| r.family == *family).map(case));
        junit.add_test_suite(suite);
    }
    if report.says_nothing() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(report.nothing_served());
        let mut suite = TestSuite::new("run");
        suite.add_test_case(TestCase::new("served", status));
        junit.add_test_suite(suite);
    }
    junit.to_string().unwrap_or_default()
}

fn case(row: &Row) -> TestCase {
    let reason = row.reason.clone().unwrap_or_default();
    let status = match row.status {
        Status::Passed | Status::ByOthers => TestCaseStatus::success(),
        Status::Failed | Status::Died | Status::UnexpectedPass => {
            let kind =
                if row.status == Status::Died { NonSuccessKind::Error } else { NonSuccessKind::Failure };
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
