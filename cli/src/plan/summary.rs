//! A plan and its speedup, as data and as text.

use super::costs::Source;
use crate::screen::{self, Screen};
use keyway::plan::{Plan, Preference, Step};
use serde::Serialize;

/// The op name of a row for a conversion that the plan inserts before the next row.
const CONVERT: &str = "(convert)";

/// A plan and the measurements.
pub struct Results<'a> {
    pub model: &'static str,
    pub device: String,
    pub batch: usize,
    /// Pixels of each side of an image.
    pub size: usize,
    /// The format of images and kernels without the plan.
    pub memory_format: &'static str,
    pub threads: usize,
    /// The source of the times in the plan.
    pub costs: Source,
    /// Layouts that backends declare for the ops, and that are not planned.
    pub unplanned: Vec<Preference>,
    pub plan: &'a Plan,
    /// Median seconds of a whole pass without the plan.
    pub before: f64,
    /// Median seconds of a whole pass with the plan.
    pub after: f64,
    /// The largest difference between scores with and without the plan.
    pub difference: f32,
}

/// The ratio of the times of passes above which a plan is reported as a loss; smaller ones are noise.
const SLOWER: f64 = 1.1;

#[derive(Serialize)]
pub struct Data<'a> {
    model: &'a str,
    device: &'a str,
    batch: usize,
    size: usize,
    memory_format: &'a str,
    threads: usize,
    /// The source of the calls' times: `measured`, or `declared` for estimates.
    costs: &'static str,
    /// Layouts that backends declare for the ops, and that are not planned.
    unplanned: &'a [Preference],
    /// The calls, in order.
    steps: Vec<StepData<'a>>,
    /// Parameters with the formats that the plan assigns.
    parameters: Vec<(&'a str, &'a str)>,
    conversions: usize,
    /// Seconds summed over the calls.
    calls_seconds_before: f64,
    calls_seconds_after: f64,
    /// Median seconds of a whole pass.
    pass_seconds_before: f64,
    pass_seconds_after: f64,
    largest_difference: f32,
}

#[derive(Serialize)]
struct StepData<'a> {
    layer: &'a str,
    op: &'a str,
    in_place: bool,
    shape: &'a [usize],
    /// The format; null if there is no choice.
    format_before: Option<&'static str>,
    format: Option<&'static str>,
    seconds_before: f64,
    /// Including the conversions.
    seconds_after: f64,
    conversions: Vec<ConversionData>,
}

#[derive(Serialize)]
struct ConversionData {
    /// The tensor of the call.
    argument: usize,
    from: Option<&'static str>,
    to: &'static str,
    bytes: u64,
    seconds: f64,
}

impl Results<'_> {
    /// All of it.
    pub fn data(&self) -> Data<'_> {
        let plan = self.plan;
        Data {
            model: self.model,
            device: &self.device,
            batch: self.batch,
            size: self.size,
            memory_format: self.memory_format,
            threads: self.threads,
            costs: if self.costs == Source::Declared { "declared" } else { "measured" },
            unplanned: &self.unplanned,
            steps: plan.steps.iter().map(data).collect(),
            parameters: plan.parameters.iter().map(|(name, format)| (name.as_str(), format.name())).collect(),
            conversions: plan.conversions(),
            calls_seconds_before: plan.before,
            calls_seconds_after: plan.after,
            pass_seconds_before: self.before,
            pass_seconds_after: self.after,
            largest_difference: self.difference,
        }
    }

    /// Prints the calls on images and the totals.
    pub fn print(&self, screen: &mut Screen) {
        let Results { model, device, batch, size, memory_format, threads, plan, costs, .. } = self;
        let estimated = if *costs == Source::Declared { ", estimated from declarations" } else { "" };
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        screen.line(format!(
            "{model}: batch {batch}, {size}x{size} pixels, f32, {memory_format} without a plan"
        ));
        screen.line(format!("on {device} with {threads} thread{}", plural(*threads)));
        screen.line("");
        let header = ["LAYER", "OP", "FORMAT", "BEFORE ms", "AFTER ms"];
        let mut table = screen::table(&header, &[3, 4]);
        let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
        let chosen = || plan.steps.iter().filter_map(|step| step.format.map(|format| (step, format)));
        for (step, format) in chosen() {
            let op = if step.in_place { format!("{}_", step.op) } else { step.op.to_string() };
            for conversion in &step.conversions {
                let (to, after) = (conversion.to.name().to_string(), ms(conversion.seconds));
                table.add_row([step.path.clone(), CONVERT.to_string(), to, String::new(), after]);
            }
            let (before, after) = (ms(step.before), ms(step.after));
            table.add_row([step.path.clone(), op, format.name().to_string(), before, after]);
        }
        screen.table(&table);
        let others = plan.steps.len() - chosen().count();
        if others > 0 {
            screen.line(format!("{others} call{} without images", plural(others)));
        }
        screen.line("");
        let moved = plan.conversions();
        let gain = |before: f64, after: f64| {
            let percent = 100.0 * (after - before) / before.max(f64::MIN_POSITIVE);
            format!("{} ms -> {} ms ({percent:+.1} %)", ms(before), ms(after))
        };
        screen.line(format!("conversions inserted: {moved}"));
        screen.line(format!("sum of calls{estimated}: {}", gain(plan.before, plan.after)));
        screen.line(format!("whole pass: {}", gain(self.before, self.after)));
        if self.after > SLOWER * self.before {
            screen.line(
                "warning: a whole pass is slower with this plan than without it, so the times of its calls are not those of the \
                 pass; do not apply it",
            );
        }
        for Preference { op, format, cost, plugin, .. } in &self.unplanned {
            let time = format!("{} times the time in row-major order", crate::numbers::ratio(*cost));
            screen.line(format!(
                "not planned, since it is a plugin's layout: {op} in {format}, {time} as `{plugin}` declares"
            ));
        }
        screen.line(format!("largest difference of a score: {:.1e}", self.difference));
    }
}

fn data(step: &Step) -> StepData<'_> {
    let conversions = step.conversions.iter().map(|conversion| ConversionData {
        argument: conversion.argument,
        from: conversion.from.map(|format| format.name()),
        to: conversion.to.name(),
        bytes: conversion.bytes,
        seconds: conversion.seconds,
    });
    StepData {
        layer: &step.path,
        op: step.op,
        in_place: step.in_place,
        shape: &step.shape,
        format_before: step.from.map(|format| format.name()),
        format: step.format.map(|format| format.name()),
        seconds_before: step.before,
        seconds_after: step.seconds(),
        conversions: conversions.collect(),
    }
}
