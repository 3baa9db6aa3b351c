//! `keyway ops`: each op with the candidates that serve it.

use crate::failure::Failure;
use crate::installed::Choice;
use crate::screen::Screen;
use crate::{installed, names, screen};
use keyway::dispatcher::op::OpEntry;
use keyway::dispatcher::registry::{self, serving};
use keyway::dispatcher::table::{Generation, OpRows, current};
use keyway::ops::tiers;
use keyway::{DType, Device, Layout};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The options of `keyway ops`.
#[derive(clap::Args)]
pub struct Options {
    /// Only those of this device.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// List what a device lacks for a tier of ops: load, infer, train or train-images.
    #[arg(long, value_name = "TIER")]
    missing_for: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Lacks {
    device: String,
    tier: &'static str,
    /// Ops of the tier that no candidate serves on the device for f32.
    ops: Vec<&'static str>,
    /// Kernels that would suffice to serve all of them, with their dtypes.
    kernels: Vec<(&'static str, &'static str)>,
}

/// The candidates of an op for one device and layout.
#[derive(Serialize)]
struct Target {
    device: &'static str,
    layout: &'static str,
    /// By dtype: the plugin, or `(view)`, `(host)`, `(decomposition)`, `(fallback)`; null if no candidate serves it.
    served_by: BTreeMap<&'static str, Option<&'static str>>,
}

#[derive(Serialize)]
struct Op {
    op: &'static str,
    schema: &'static str,
    owner: &'static str,
    targets: Vec<Target>,
}

/// Lists the ops.
///
/// # Errors
/// Two definitions of one op.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let backends = installed::start(choice)?;
    let device = options.device.as_deref().map(names::device_kind).transpose()?;
    if let Some(tier) = &options.missing_for {
        return missing_for(tier, device.unwrap_or(Device::CPU), options.json, screen);
    }
    let generation = current();
    let mut targets = targets();
    if let Some(device) = device {
        targets.retain(|(of, _)| of.kind == device.kind);
    }
    if options.json {
        let ops: Vec<Op> = sorted(generation).into_iter().map(|rows| describe(rows, &targets)).collect();
        screen.json(&ops);
        return Ok(());
    }
    let mut marks = Marks::default();
    for (device, layout) in &targets {
        screen.line(format!("Ops for ({}, {layout})\n", device.name()));
        matrix(generation, *device, *layout, &mut marks, screen);
        screen.line("");
    }
    screen.line(format!("{} ops. {}", generation.ops().count(), marks.legend()));
    if registry::kernels().is_empty() {
        screen::note(&format!("no backend is installed: {}", installed::advice("cpu", &backends.discovery)));
    }
    Ok(())
}

/// Lists the ops that a device lacks for a tier.
fn missing_for(tier: &str, device: Device, json: bool, screen: &mut Screen) -> Result<(), Failure> {
    let Some(tiers) = tiers::up_to(tier) else {
        let there: Vec<String> = tiers::ALL.iter().map(|t| format!("{}: {}", t.name, t.about)).collect();
        return Err(Failure::Usage(format!(
            "there is no tier `{tier}`; there are\n  {}",
            there.join("\n  ")
        )));
    };
    let missing = tiers::missing(tiers, device, DType::F32).map_err(|e| Failure::Usage(e.to_string()))?;
    let count: usize = tiers.iter().map(|tier| tier.ops.len()).sum();
    let last = tiers.last().map_or("", |tier| tier.name);
    if json {
        let kernels = missing.kernels.into_iter().collect();
        screen.json(&Lacks { device: device.name().to_string(), tier: last, ops: missing.ops, kernels });
        return Ok(());
    }
    let device = device.name();
    if missing.ops.is_empty() {
        screen.line(format!("{device} serves all {count} ops of the tier `{last}`."));
        return Ok(());
    }
    screen.line(format!("{device} lacks {} of the {count} ops of the tier `{last}`:", missing.ops.len()));
    screen.line(format!("  {}", missing.ops.join(", ")));
    screen.line(format!("With these {} kernels it would serve all:", missing.kernels.len()));
    let kernels: Vec<String> = missing.kernels.iter().map(|(op, dtype)| format!("{op} ({dtype})")).collect();
    screen.line(format!("  {}", kernels.join(", ")));
    Ok(())
}

/// All pairs of device and layout with a registered kernel; host memory with `strided` if there is none.
fn targets() -> Vec<(Device, Layout)> {
    let mut targets: BTreeSet<(Device, Layout)> =
        registry::kernels().iter().map(|k| (Device { kind: k.device, index: 0 }, k.layout)).collect();
    if targets.is_empty() {
        targets.insert((Device::CPU, Layout::STRIDED));
    }
    targets.into_iter().collect()
}

fn sorted(generation: &'static Generation) -> Vec<&'static OpRows> {
    let mut ops: Vec<_> = generation.ops().collect();
    ops.sort_by_key(|rows| rows.op.name);
    ops
}

/// The candidate that serves a key; `None` if there is none.
fn served_by(op: &OpEntry, device: Device, layout: Layout, dtype: DType) -> Option<&'static str> {
    serving::server(op, device, layout, dtype).map(|candidate| candidate.name())
}

fn describe(rows: &OpRows, targets: &[(Device, Layout)]) -> Op {
    let target = |(device, layout): &(Device, Layout)| Target {
        device: device.name(),
        layout: layout.name(),
        served_by: DType::REAL
            .iter()
            .map(|dtype| (dtype.name(), served_by(rows.op, *device, *layout, *dtype)))
            .collect(),
    };
    Op {
        op: rows.op.name,
        schema: rows.op.schema.text,
        owner: rows.op.spec.owner,
        targets: targets.iter().map(target).collect(),
    }
}

fn matrix(
    generation: &'static Generation,
    device: Device,
    layout: Layout,
    marks: &mut Marks,
    screen: &mut Screen,
) {
    /// The number of columns of a name and the space after it, so that the marks still fit.
    const NAME: usize = 28;
    let header = DType::REAL.map(DType::name);
    screen.whole_line(format!("{:NAME$}{}", "OP", header.join(" ")));
    for rows in sorted(generation) {
        let name = rows.op.name;
        let mut cells = String::new();
        for dtype in DType::REAL {
            let mark = marks.of(served_by(rows.op, device, layout, dtype));
            cells += &format!("{mark:width$} ", width = dtype.name().len());
        }
        // A longer name is printed on a separate line.
        let (above, name) = if name.len() < NAME { (String::new(), name) } else { (format!("{name}\n"), "") };
        screen.whole_line(format!("{above}{name:NAME$}{}", cells.trim_end()));
    }
}

/// One letter for each plugin, assigned in order of appearance.
#[derive(Default)]
struct Marks {
    plugins: Vec<&'static str>,
    view: bool,
    composed: bool,
    fallback: bool,
    missing: bool,
}

const LETTERS: &[char] = &['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M'];

impl Marks {
    fn of(&mut self, served: Option<&'static str>) -> char {
        let seen = |flag: &mut bool, mark: char| {
            *flag = true;
            mark
        };
        match served {
            None => seen(&mut self.missing, '.'),
            Some("(view)" | "(host)") => seen(&mut self.view, 'v'),
            Some("(decomposition)") => seen(&mut self.composed, 'o'),
            Some("(fallback)") => seen(&mut self.fallback, 'f'),
            Some(plugin) => {
                let index = self.plugins.iter().position(|p| *p == plugin).unwrap_or_else(|| {
                    self.plugins.push(plugin);
                    self.plugins.len() - 1
                });
                LETTERS.get(index).copied().unwrap_or('*')
            }
        }
    }

    fn legend(&self) -> String {
        let letter = |index: usize| LETTERS.get(index).copied().unwrap_or('*');
        let mut parts: Vec<String> =
            self.plugins.iter().enumerate().map(|(i, plugin)| format!("{} {plugin}", letter(i))).collect();
        let others = [
            (self.view, "v a view, host only"),
            (self.composed, "o composed of other ops"),
            (self.fallback, "f on another device"),
            (self.missing, ". not supported"),
        ];
        parts.extend(others.iter().filter(|(seen, _)| *seen).map(|(_, text)| (*text).to_string()));
        parts.join("; ")
    }
}
