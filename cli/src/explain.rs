//! `keyway explain`: every candidate for a key, with the reason why it is selected or not.

use crate::documentation::Documentation;
use crate::failure::Failure;
use crate::installed::{Choice, Declared};
use crate::known::would_serve;
use crate::numbers::ratio;
use crate::screen::Screen;
use crate::{installed, names};
use keyway::Device;
use keyway::dispatcher::explain::Explanation;
use keyway::dispatcher::explain::explain;
use keyway::dispatcher::{device as devices, registry};
use serde::Serialize;

/// The key to explain.
#[derive(clap::Args)]
pub struct Options {
    /// The op, such as `add`.
    op: String,
    /// The device, such as `cpu` or `cuda:1`.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The layout.
    #[arg(long, default_value = "strided")]
    layout: String,
    /// The dtype that is computed in.
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Show the op's documentation instead: arguments, formula, edge cases, errors, dtypes and gradient.
    #[arg(long, conflicts_with_all = ["device", "layout", "dtype"])]
    doc: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An explanation, with the formats that plugins declare for the op on the device.
#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    preferences: Vec<Declared>,
}

/// Explains which candidate serves a key, or prints the op's documentation.
///
/// # Errors
/// Names that do not exist.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    let backends = installed::start(choice)?;
    let op = names::op(&options.op)?;
    if options.doc {
        let documentation = Documentation::of(op);
        if options.json {
            screen.json(&documentation)
        } else {
            documentation.print(screen)
        }
        return Ok(());
    }
    let device = names::device_kind(&options.device)?;
    let layout = names::layout(&options.layout)?;
    let dtype = names::dtype(&options.dtype)?;
    let explanation = explain(op, device, layout, dtype);
    let mut preferences = installed::declared()?;
    preferences.retain(|declared| declared.op == op.name && declared.device == device.name());
    if options.json {
        screen.json(&Explained { explanation: &explanation, preferences });
        return Ok(());
    }
    screen.line(explanation.to_string());
    for Declared { format, cost, plugin, used, .. } in preferences {
        let other = if used {
            ""
        } else {
            "; not used, since another plugin has the higher priority or was found first"
        };
        screen.line(format!(
            "  `{plugin}` declares {format}: {} times the time in row-major order{other}",
            ratio(cost)
        ));
    }
    if let Some((0, reason)) = devices::server(device.kind).map(devices::count) {
        let reason = if reason.is_empty() { "none is present" } else { &reason };
        screen.line(format!("  {}: 0 devices: {reason}", device.name()));
    }
    let served = explanation.candidates.iter().any(|c| c.chosen);
    // Kernels for host memory need no plugin that provides the device.
    let none_for_device = devices::server(device.kind).is_none()
        && (device != Device::CPU || registry::kernels().iter().all(|k| k.device != device.kind));
    if !served && none_for_device {
        screen.line(format!(
            "  no backend for `{}`: {}",
            device.name(),
            installed::advice(device.name(), &backends.discovery)
        ));
    } else if explanation.candidates.is_empty() {
        let mine = || registry::kernels().into_iter().filter(|k| k.op == op.name);
        let here: Vec<&str> = mine()
            .filter(|k| k.device == device.kind && k.layout == layout)
            .map(|k| keyway::DType::from_code(k.dtype).map_or("?", keyway::DType::name))
            .collect();
        let is_served = registry::kernels().iter().any(|k| k.device == device.kind && k.layout == layout);
        let would = would_serve(layout.name()).filter(|_| !is_served);
        screen.line(match would {
            Some(would) => format!("  no backend for ({}, {layout}): {would}", device.name()),
            None if here.is_empty() => format!(
                "  no kernel of `{}` for ({}, {layout}); `keyway ops` shows what serves each op",
                op.name,
                device.name()
            ),
            None => format!("  there are kernels for {}; convert with `to_dtype`", here.join(", ")),
        });
    }
    Ok(())
}
