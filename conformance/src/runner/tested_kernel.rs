//! The kernel that a case tests, by name.

use crate::case::Case;
use crate::families::composites::is_of_kernel;
use keyway::{Device, Layout};

/// Families all of whose variants name the device and the layout of a kernel.
const BY_KERNEL: [&str; 2] = ["kernels", "layout_grads"];

/// The kernel that a case on this device tests, by op, dtype, device and layout: `kernel relu/f32 on cpu:strided`. A case
/// of an op counts for the kernel for strided tensors if its variant does not name a layout; a case without an op has the
/// name of its subject.
pub(super) fn tested_kernel(case: &Case, device: Device) -> String {
    if !case.is_about_op() {
        return case.name().to_string();
    }
    let dtype = case.dtype.map(|dtype| format!("/{dtype}")).unwrap_or_default();
    let on = if BY_KERNEL.contains(&case.family) || is_of_kernel(case) {
        case.variant.clone()
    } else {
        format!("{}:{}", Device { kind: device.kind, index: 0 }.name(), Layout::STRIDED)
    };
    format!("kernel {}{dtype} on {on}", case.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway::DType;

    #[test]
    fn cases_of_a_kernel_have_its_name() {
        for name in BY_KERNEL {
            assert!(crate::families::ALL.iter().any(|family| family.name == name), "{name}");
        }
        let def = keyway::ops::all().find(|def| def.name() == "relu").expect("relu");
        let of = |family, variant: &str| {
            tested_kernel(&Case::of(family, def, DType::I16, 3, variant), Device::CPU)
        };
        assert_eq!(of("values", ""), "kernel relu/i16 on cpu:strided");
        assert_eq!(of("strided", "transposed"), "kernel relu/i16 on cpu:strided");
        assert_eq!(of("kernels", "cpu:strided"), of("out", "empty"));
        assert_eq!(of("layout_grads", "cpu:csr"), "kernel relu/i16 on cpu:csr");
        assert_eq!(tested_kernel(&Case::about("layout", "csr", "round_trip"), Device::CPU), "csr");
    }
}
