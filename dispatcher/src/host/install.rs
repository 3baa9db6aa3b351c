//! From what a plugin hands over to what the registry keeps.

use crate::base::dtype::table::{announce, describe};
use crate::base::error::{Error, Result};
use crate::base::intern::{DEVICES, DTYPES};
use crate::base::key::Layout;
use crate::base::plugin::PluginEntry;
use crate::device::DeviceEntry;
use crate::loader::{LoadError, Plugin, Rejected};
use crate::registry::{self, KernelEntry, LayoutEntry, LayoutOpsEntry, MAX_PRIORITY};
use keyway_sdk::abi::RawStr;

/// Copies a string of the plugin for the life of the process.
fn text(raw: RawStr) -> &'static str {
    // SAFETY: the plugin's strings are static.
    String::leak(unsafe { raw.read() }.into_owned())
}

fn full(what: &'static str, name: &str) -> Error {
    Error::Registration {
        what,
        name: name.to_string(),
        reason: "there is no room for another name".to_string(),
    }
}

/// Registers everything that a plugin brings and makes it visible at once.
///
/// # Errors
/// [`LoadError::Registration`]; nothing of the plugin is registered then. The names that it brought keep their numbers.
pub fn install(loaded: &Plugin) -> std::result::Result<&'static PluginEntry, Rejected> {
    register(loaded).map_err(|error| {
        let (what, name, reason) = match error {
            Error::Registration { what, name, reason } => (what, name, reason),
            other => ("plugin", loaded.manifest.name.clone(), other.to_string()),
        };
        Rejected { path: loaded.path.clone(), error: LoadError::Registration { what, name, reason } }
    })
}

fn register(loaded: &Plugin) -> Result<&'static PluginEntry> {
    let tables = loaded.tables();
    let mut batch = registry::lock();
    let plugin: &'static PluginEntry = Box::leak(Box::new(PluginEntry {
        name: String::leak(loaded.manifest.name.clone()),
        version: loaded.manifest.version.clone(),
        variant: loaded.manifest.variant.clone(),
        path: loaded.path.clone(),
        order: batch.state.plugins.len(),
        compatible_with: loaded.manifest.compatible_with.clone(),
        priority: loaded.manifest.priority.clamp(-MAX_PRIORITY, MAX_PRIORITY).into(),
        retired: false.into(),
    }));

    let mut dtypes = Vec::new();
    for api in tables.dtypes {
        dtypes.push((announce(api, plugin.name)?, *api));
    }
    let mut devices = Vec::new();
    for api in tables.devices {
        let name = text(api.name);
        let kind = DEVICES.intern(name).ok_or_else(|| full("device", name))?;
        devices.push(&*Box::leak(Box::new(DeviceEntry { kind, api, plugin })));
    }
    let mut layouts: Vec<&'static LayoutEntry> = Vec::new();
    for api in tables.layouts {
        let name = text(api.name);
        let names = |pointer: *const RawStr, count: u32| -> Vec<String> {
            // SAFETY: the plugin gives `count` static strings.
            (0..count as usize).map(|i| text(unsafe { *pointer.add(i) }).to_string()).collect()
        };
        let entry = &*Box::leak(Box::new(LayoutEntry {
            layout: Layout::intern(name).ok_or_else(|| full("layout", name))?,
            precedence: api.precedence,
            components: names(api.components, api.n_components),
            attrs: names(api.attrs, api.n_attrs),
            plugin,
        }));
        batch.state.check_layout(entry)?;
        if layouts.iter().any(|e| e.layout == entry.layout) {
            let reason = "the plugin declares it twice".to_string();
            return Err(Error::Registration { what: "layout", name: name.to_string(), reason });
        }
        layouts.push(entry);
    }
    let mut layout_ops: Vec<&'static LayoutOpsEntry> = Vec::new();
    for api in tables.layout_ops {
        let (name, device) = (text(api.layout), text(api.device));
        let refuse = |reason: String| {
            let name = format!("{name} on {device}");
            Err(Error::Registration { what: "functions of layout", name, reason })
        };
        let Some(layout) = layouts.iter().map(|e| e.layout).find(|layout| layout.name() == name) else {
            return refuse(
                "the plugin does not declare the layout; it must, as every other that knows it".into(),
            );
        };
        let device = DEVICES.intern(device).ok_or_else(|| full("device", device))?;
        if layout_ops.iter().any(|e| (e.layout, e.device) == (layout, device)) {
            return refuse("the plugin brings them twice".into());
        }
        let shapes = match text(api.shapes) {
            "" => "of another shape",
            shapes => shapes,
        };
        layout_ops.push(&*Box::leak(Box::new(LayoutOpsEntry { layout, device, shapes, api, plugin })));
    }
    let mut kernels = Vec::new();
    for raw in tables.kernels {
        let (device, layout, dtype) = (text(raw.device), text(raw.layout), text(raw.dtype));
        kernels.push(&*Box::leak(Box::new(KernelEntry {
            run: raw.run,
            flags: raw.flags,
            op: text(raw.op),
            signature: text(raw.signature),
            device: DEVICES.intern(device).ok_or_else(|| full("device", device))?,
            layout: Layout::intern(layout).ok_or_else(|| full("layout", layout))?,
            dtype: DTYPES.intern(dtype).ok_or_else(|| full("dtype", dtype))?,
            plugin,
        })));
    }

    let ops = super::ops::specs(tables.ops, plugin.name)?;
    batch.all_or_nothing(|batch| {
        for spec in ops {
            batch.op(spec)?;
        }
        for raw in tables.interposers {
            batch.interposer(text(raw.name), super::interposer::spec(raw), plugin)?;
        }
        Ok(())
    })?;
    dtypes.into_iter().for_each(|(dtype, api)| describe(dtype, api, plugin.name));
    batch.state.layout_ops.extend(layout_ops);
    batch.add(plugin, devices, layouts, kernels);
    batch.publish();
    Ok(plugin)
}
