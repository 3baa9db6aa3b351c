//! The status report of this library: the NVIDIA libraries that it found, and the replacements of missing ones.

use crate::blas;
use crate::checks;
use crate::device::Cuda;
use crate::dnn;
use crate::driver::{driver, place, shown};
use crate::gpu::gpu;
use crate::memory;
use keyway_sdk::author::{Error, Report};

impl Report for Cuda {
    fn facts() -> Vec<(&'static str, String)> {
        let found = match driver() {
            Ok(driver) => format!("for CUDA {}, {}", shown(driver.version), driver.path.display()),
            // The reason is reported by the device count.
            Err(_) => "none that works".to_string(),
        };
        vec![
            ("driver", format!("{found}; {}", place())),
            ("cuBLASLt", blas::fact()),
            ("cuDNN", dnn::fact()),
            ("memory", memory::fact()),
            ("wrong indices", checks::fact()),
        ]
    }

    fn memory(index: u32) -> Result<String, Error> {
        gpu(index)?.memory.snapshot()
    }
}
