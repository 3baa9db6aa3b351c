//! Converts the tables that a plugin provides to the entries of the registry.

use super::text::text;
use crate::base::dtype::table::{announce, describe};
use crate::base::error::{Error, Result};
use crate::base::intern::{DEVICES, DTYPES, Interner, LAYOUTS};
use crate::base::key::Layout;
use crate::base::plugin::PluginEntry;
use crate::device::DeviceEntry;
use crate::loader::{LoadError, Plugin, Rejected, declared};
use crate::registry::{
    self, Batch, Conversion, Declared, KernelEntry, LayoutEntry, LayoutOpsEntry, LayoutTolerance,
    MAX_PRIORITY, PreferenceEntry,
};
use keyway_sdk::abi::RawStr;

/// The ids of the names that a plugin uses.
#[derive(Default)]
struct Names {
    /// Names that were not interned before.
    new: Vec<(&'static Interner, u16)>,
}

impl Names {
    fn number(&mut self, list: &'static Interner, what: &'static str, name: &str) -> Result<u16> {
        if let Some(known) = list.get(name) {
            return Ok(known);
        }
        let number = list.intern(name).ok_or_else(|| Error::Registration {
            what,
            name: name.to_string(),
            reason: "the table of names is full".to_string(),
        })?;
        self.new.push((list, number));
        Ok(number)
    }

    fn device(&mut self, name: &str) -> Result<u16> {
        self.number(&DEVICES, "device", name)
    }

    fn layout(&mut self, name: &str) -> Result<Layout> {
        self.number(&LAYOUTS, "layout", name).map(Layout)
    }

    fn dtype(&mut self, name: &str) -> Result<u16> {
        self.number(&DTYPES, "dtype", name)
    }
}

/// Registers the contents of these plugins and publishes them in one step. Returns the refused plugins; nothing of them is
/// registered, and the others are.
pub fn install_all<'a>(loaded: impl IntoIterator<Item = &'a Plugin>) -> Vec<Rejected> {
    let mut batch = registry::lock();
    let mut refused = Vec::new();
    for plugin in loaded {
        let mut names = Names::default();
        let Err(error) = register(&mut batch, plugin, &mut names) else { continue };
        names.new.into_iter().for_each(|(list, number)| list.forget(number));
        let (what, name, reason) = match error {
            Error::Registration { what, name, reason } => (what, name, reason),
            other => ("plugin", plugin.manifest.name.clone(), other.to_string()),
        };
        let error = LoadError::Registration { what, name, reason };
        refused.push(Rejected { path: plugin.path.clone(), error });
    }
    batch.publish();
    refused
}

/// The devices in a plugin's manifest for which it registers nothing. Host memory needs nothing.
fn unresolved_devices(loaded: &Plugin) -> Vec<String> {
    let tables = loaded.tables();
    let brought = |name: &str| {
        name == "cpu"
            || tables.devices.iter().any(|api| text(api.name) == name)
            || tables.kernels.iter().any(|kernel| text(kernel.device) == name)
            || tables.layout_ops.iter().any(|api| text(api.device) == name)
    };
    loaded.manifest.devices.iter().filter(|name| !brought(name)).cloned().collect()
}

fn register(batch: &mut Batch, loaded: &Plugin, names: &mut Names) -> Result<()> {
    let tables = loaded.tables();
    let plugin: &'static PluginEntry = Box::leak(Box::new(PluginEntry {
        name: String::leak(loaded.manifest.name.clone()),
        version: loaded.manifest.version.clone(),
        variant: loaded.manifest.variant.clone(),
        path: loaded.path.clone(),
        order: batch.state.plugins.len(),
        compatible_with: loaded.manifest.compatible_with.clone(),
        unresolved_devices: unresolved_devices(loaded),
        priority: loaded.manifest.priority.clamp(-MAX_PRIORITY, MAX_PRIORITY).into(),
        retired: false.into(),
    }));

    let mut dtypes = Vec::new();
    for api in tables.dtypes {
        names.dtype(text(api.name))?;
        dtypes.push((announce(api, plugin.name)?, *api));
    }
    let mut devices = Vec::new();
    for api in tables.devices {
        let kind = names.device(text(api.name))?;
        devices.push(&*Box::leak(Box::new(DeviceEntry { kind, api, plugin })));
    }
    let mut layouts: Vec<&'static LayoutEntry> = Vec::new();
    for api in tables.layouts {
        let name = text(api.name);
        let listed = |pointer: *const RawStr, count: u32| -> Vec<String> {
            // SAFETY: the plugin passes `count` static strings.
            (0..count as usize).map(|i| text(unsafe { *pointer.add(i) }).to_string()).collect()
        };
        let declared = Declared {
            name,
            attr_types: text(api.attr_types),
            options: text(api.options),
            tolerance: LayoutTolerance {
                absolute: api.absolute,
                relative: api.relative,
                relative_to_max: api.relative_to_max,
            },
            gradient: api.gradient,
            samples: text(api.samples),
        };
        let conversion = Conversion::read(&declared, api.n_attrs as usize).map_err(|what| {
            let reason = format!("its declaration has {what}; correct it in the plugin");
            Error::Registration { what: "layout", name: name.to_string(), reason }
        })?;
        let entry = &*Box::leak(Box::new(LayoutEntry {
            layout: names.layout(name)?,
            precedence: api.precedence,
            components: listed(api.components, api.n_components),
            attrs: listed(api.attrs, api.n_attrs),
            conversion,
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
        let Some(declared) = layouts.iter().find(|e| e.layout.name() == name) else {
            return refuse(
                "the plugin does not declare the layout; it must, as every other that knows it".into(),
            );
        };
        let layout = declared.layout;
        if declared.conversion.projects_gradients && api.project.is_none() {
            return refuse(
                "the layout declares projected gradients, so its functions need `project`; bring it, or declare \
                 straight-through gradients"
                    .into(),
            );
        }
        let device = names.device(device)?;
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
        kernels.push(&*Box::leak(Box::new(KernelEntry {
            run: raw.run,
            flags: raw.flags,
            op: text(raw.op),
            signature: text(raw.signature),
            device: names.device(text(raw.device))?,
            layout: names.layout(text(raw.layout))?,
            dtype: names.dtype(text(raw.dtype))?,
            plugin,
        })));
    }
    let mut preferences = Vec::new();
    let mut ignored = Vec::new();
    for (nth, raw) in tables.preferences.iter().enumerate() {
        if let Some(reason) = declared::trouble(tables.preferences, nth) {
            ignored.push((plugin, reason));
            continue;
        }
        preferences.push(&*Box::leak(Box::new(PreferenceEntry {
            op: text(raw.op),
            device: names.device(text(raw.device))?,
            format: names.layout(text(raw.format))?,
            cost: raw.cost,
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
    batch.state.preferences.extend(preferences);
    batch.state.ignored.extend(ignored);
    batch.add(plugin, devices, layouts, kernels);
    Ok(())
}
