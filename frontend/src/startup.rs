//! The parts of a start that name the modules above [`runtime`](crate::runtime).

use crate::autograd::derivative::info;
use crate::backend::FALLBACK_VARIABLE;
use crate::layout_fallback::{LAYOUT_FALLBACK_VARIABLE, set_layout_fallback};
use crate::op::flags::OpFlags;
use crate::ops::def::OpDef;
use crate::ops::memory::{clone, copy, pin_memory, to_device, to_dtype, to_layout};
use crate::profiler::Copies;
use crate::runtime::{Parts, Program};
use crate::{autograd, ops, profiler, rng};
use keyway_dispatcher::call::convert::{Conversions, set_conversions};
use keyway_dispatcher::fork::Held;
use keyway_dispatcher::op::{OpEntry, OpSpec};
use keyway_dispatcher::registry;
use once_cell::sync::OnceCell;

static AUTOGRAD: OnceCell<()> = OnceCell::new();
static PROFILER: OnceCell<()> = OnceCell::new();

impl Parts for Program {
    fn specs() -> Vec<OpSpec> {
        ops::all().map(|definition| definition.spec()).collect()
    }

    fn install(entries: &'static [&'static OpEntry]) -> keyway_dispatcher::Result<()> {
        set_conversions(conversions(entries)?);
        AUTOGRAD.get_or_try_init(autograd::install)?;
        PROFILER.get_or_try_init(|| profiler::install(copies))?;
        Ok(())
    }

    fn bind(entries: &'static [&'static OpEntry]) {
        ops::all().zip(entries).for_each(|(definition, entry)| definition.bind(entry));
    }

    fn apply_policies(preferred: &[String]) {
        let loaded = registry::plugins();
        let names: Vec<&str> = preferred
            .iter()
            .map(String::as_str)
            .filter(|name| loaded.iter().any(|p| p.name == *name))
            .collect();
        let mut failed = registry::prefer(&names).err();
        if let Ok(policy) = std::env::var(FALLBACK_VARIABLE) {
            let set = registry::FallbackPolicy::parse(&policy)
                .and_then(|parsed| registry::set_default_fallback(parsed).map(|()| parsed));
            match set {
                Ok(parsed) => {
                    if let Some(trouble) = parsed.trouble() {
                        keyway_dispatcher::log::warn(&format!("{}: {trouble}", FALLBACK_VARIABLE));
                    }
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            keyway_dispatcher::log::warn(&format!("{}: {error}", FALLBACK_VARIABLE));
        }
        let variable = LAYOUT_FALLBACK_VARIABLE;
        if let Ok(policy) = std::env::var(variable)
            && let Err(error) = set_layout_fallback(&policy)
        {
            keyway_dispatcher::log::warn(&format!("{variable}: {error}"));
        }
    }

    fn lock_for_fork() -> Held {
        rng::held()
    }
}

/// The ops that convert tensors on the way of a call.
fn conversions(entries: &[&'static OpEntry]) -> keyway_dispatcher::Result<Conversions> {
    let of = |def: &OpDef| {
        let entry = entries.iter().copied().find(|entry| entry.name == def.name());
        entry.ok_or_else(|| keyway_dispatcher::Error::Registration {
            what: "op",
            name: def.name().to_owned(),
            reason: "it is not in the list of its family".to_owned(),
        })
    };
    Ok(Conversions {
        to_dtype: of(&to_dtype::DEF)?,
        to_format: of(&clone::DEF)?,
        to_device: of(&to_device::DEF)?,
        to_layout: of(&to_layout::DEF)?,
        copy: of(&copy::DEF)?,
    })
}

/// The copies of memory by an op, for the profiler.
fn copies(op: &OpEntry) -> Copies {
    let is = |definitions: &[&OpDef]| definitions.iter().any(|definition| definition.name() == op.name);
    let copies = is(&[&clone::DEF, &copy::DEF, &to_dtype::DEF, &to_layout::DEF]);
    Copies {
        copies,
        moves: copies || is(&[&to_device::DEF, &pin_memory::DEF]),
        skips_first: is(&[&copy::DEF]),
        sets_format: info(op).is_some_and(|info| info.flags.has(OpFlags::SETS_FORMAT)),
    }
}
