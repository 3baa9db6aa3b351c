//! Numbers in the place of tensors: those that the dtype does not hold, and those that it rounds.

use super::{of, values};
use keyway::ops::memory::clone::MemoryFormat;
use keyway::{DType, Device, Result, Tensor};
use keyway_dispatcher::op::Arg;

fn bytes(values: &[i8]) -> Tensor {
    Tensor::from_slice(values).unwrap()
}

#[test]
fn a_number_meets_narrow_floats_as_it_is() -> Result<()> {
    let x = [3.0f32, 7.0, 1000.0, 5.0];
    for dtype in [DType::F16, DType::BF16] {
        let t = of(&x.map(f64::from), dtype);
        // Also where elements do not lie in a row, and in place.
        let turned =
            Tensor::empty(&[1, 4, 1, 1], dtype, Device::CPU)?.to_format(MemoryFormat::ChannelsLast)?;
        turned.copy_(&t.reshape_as_sizes(&[1, 4, 1, 1])?)?;
        let same = |made: Tensor, f: fn(f32) -> f32, what: &str| {
            assert_eq!(values(&made), once(&x, dtype, f), "{what} of {dtype}");
        };
        same(t.mul(0.1)?, |x| x * 0.1, "mul");
        same(turned.mul(0.1)?.flatten(0, -1)?, |x| x * 0.1, "mul");
        same(t.copied()?.mul_(0.1)?, |x| x * 0.1, "mul_");
        same(t.add(0.1)?, |x| x + 0.1, "add");
        same(t.sub(0.1)?, |x| x - 0.1, "sub");
        same(t.rsub(0.1)?, |x| 0.1 - x, "rsub");
        same(t.add_scaled(0.1, 3.3)?, |x| x + 3.3 * 0.1, "add with alpha");
        same(t.div(0.3)?, |x| x / 0.3, "div");
        same(t.rdiv(0.1)?, |x| 0.1 / x, "rdiv");
        same(t.floor_divide(0.1)?, |x| (f64::from(x) / f64::from(0.1f32)).floor() as f32, "floor_divide");
        same(t.fmod(0.3)?, |x| x % 0.3, "fmod");
        same(t.remainder(0.3)?, |x| x % 0.3, "remainder");
        same(t.lerp(&t.mul(2)?, 0.1)?, |x| x + 0.1 * x, "lerp");
        let power = values(&t.pow(2.3)?);
        let expected = once(&x, dtype, |x| f64::from(x).powf(2.3) as f32);
        assert_eq!(power, expected, "pow of {dtype}");
        let angle = values(&t.atan2(0.1)?);
        assert_eq!(angle, once(&x, dtype, |x| f64::from(x).atan2(0.1) as f32), "atan2 of {dtype}");
    }
    Ok(())
}
