//! The state of each device.

use crate::blas::Blas;
use crate::checks::Checks;
use crate::dnn::Dnn;
use crate::driver::{Attribute, Context, driver};
use crate::memory::Memory;
use crate::modules::Modules;
use keyway_sdk::Error;
use keyway_sdk::author::{MatmulPrecision, float32_matmul_precision};
use std::sync::OnceLock;

/// Maximum number of devices.
const MOST: usize = 64;

/// One device.
pub struct Gpu {
    /// The driver's context.
    pub context: Context,
    /// The device's allocator.
    pub memory: Memory,
    /// The loaded kernels.
    pub modules: Modules,
    /// Asynchronous checks of indices.
    pub checks: Checks,
    /// The state of cuBLASLt.
    pub blas: Blas,
    /// The state of cuDNN.
    pub dnn: Dnn,
    /// The device's name, with its compute capability.
    pub name: String,
    /// Ten times its compute capability, such as 90 for 9.0.
    pub chip: u32,
    /// The number of multiprocessors.
    pub units: u32,
    /// Total bytes of memory.
    pub total_memory: u64,
}

impl Gpu {
    /// Whether the chip has tensor cores, and this library kernels for them, for this dtype.
    pub fn multiplies(&self, dtype: &str) -> bool {
        match dtype {
            "f16" => true,
            "bf16" => self.chip >= 80,
            _ => false,
        }
    }

    /// Whether factors of this dtype are currently rounded to TF32 for tensor cores: f32, if the chip supports it and the program
    /// allows it.
    pub fn rounds(&self, dtype: &str) -> bool {
        dtype == "f32" && self.chip >= 80 && float32_matmul_precision() == MatmulPrecision::High
    }
}

static GPUS: [OnceLock<Gpu>; MOST] = [const { OnceLock::new() }; MOST];

/// The lowest compute capability that the images are for.
const LOWEST: (u32, u32) = (7, 5);

/// The number of devices, or an error with the reason why there are none.
pub fn count() -> Result<u32, Error> {
    Ok(driver()?.count.min(MOST as u32))
}

/// The state of a device. A failed initialisation is repeated at the next call.
pub fn gpu(index: u32) -> Result<&'static Gpu, Error> {
    let count = count()?;
    let slot = GPUS.get(index as usize).filter(|_| index < count).ok_or_else(|| Error::InvalidArgument {
        argument: "index",
        expected: format!("a device below {count}, their number; CUDA_VISIBLE_DEVICES may hide others"),
        got: index.to_string(),
    })?;
    if let Some(gpu) = slot.get() {
        return Ok(gpu);
    }
    let context = Context::new(index)?;
    let (major, minor) = (context.attribute(Attribute::Major)?, context.attribute(Attribute::Minor)?);
    if (major, minor) < LOWEST {
        return Err(Error::Failed {
            detail: format!(
                "{} has compute capability {major}.{minor}, and the kernels are for {}.{} and higher; hide it by \
                 CUDA_VISIBLE_DEVICES",
                context.name()?,
                LOWEST.0,
                LOWEST.1
            ),
        });
    }
    let made = Gpu {
        name: format!("{}, compute capability {major}.{minor}", context.name()?),
        units: context.attribute(Attribute::Multiprocessors)?,
        total_memory: context.total_memory()?,
        chip: 10 * major + minor,
        memory: Memory::default(),
        modules: Modules::new(10 * major + minor),
        checks: Checks::default(),
        blas: Blas::new(major),
        dnn: Dnn::new(),
        context,
    };
    Ok(slot.get_or_init(|| made))
}
