//! Quotients and remainders of whole numbers and of reals, as the ops of division share them.

use keyway_sdk::author::{Call, Error, Int, Plain, View};

/// A number type that division is computed in. A divisor that is an integer zero gives 0; see [`refuse_zeros`].
pub trait Divide: Plain {
    /// The quotient, rounded towards zero.
    fn trunc_quotient(self, divisor: Self) -> Self;
    /// The quotient, rounded towards negative infinity.
    fn floor_quotient(self, divisor: Self) -> Self;
    /// What `trunc_quotient` leaves: it has the sign of the dividend.
    fn trunc_remainder(self, divisor: Self) -> Self;
    /// What `floor_quotient` leaves: it has the sign of the divisor.
    fn floor_remainder(self, divisor: Self) -> Self;
    /// An error if any element of argument `index` is a divisor that has no quotient.
    fn refuse_zeros(call: &Call, index: usize) -> Result<(), Error>;
}

macro_rules! integer {
    ($signed:literal: $($t:ty),*) => {$(
        #[allow(unused_comparisons)]
        impl Divide for $t {
            #[inline(always)]
            fn trunc_quotient(self, divisor: Self) -> Self {
                if divisor == 0 { 0 } else { self.wrapping_div(divisor) }
            }
            #[inline(always)]
            fn floor_quotient(self, divisor: Self) -> Self {
                let down = self.trunc_remainder(divisor) != 0 && $signed && ((self < 0) != (divisor < 0));
                self.trunc_quotient(divisor).wrapping_sub(down as $t)
            }
            #[inline(always)]
            fn trunc_remainder(self, divisor: Self) -> Self {
                if divisor == 0 { 0 } else { self.wrapping_rem(divisor) }
            }
            #[inline(always)]
            fn floor_remainder(self, divisor: Self) -> Self {
                let rest = self.trunc_remainder(divisor);
                if $signed && rest != 0 && ((rest < 0) != (divisor < 0)) { rest.wrapping_add(divisor) } else { rest }
            }
            fn refuse_zeros(call: &Call, index: usize) -> Result<(), Error> {
                if any(call.view::<$t>(index)?, |d| d == 0) { Err(zero_divisor()) } else { Ok(()) }
            }
        }
    )*};
}
integer!(true: i8, i16, i32, i64);
integer!(false: u8, u16, u32, u64);

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Divide for $t {
            #[inline(always)]
            fn trunc_quotient(self, divisor: Self) -> Self {
                (self / divisor).trunc()
            }
            #[inline(always)]
            fn floor_quotient(self, divisor: Self) -> Self {
                let (a, b) = (self, divisor);
                let rest = a % b;
                let down = rest != 0.0 && ((rest < 0.0) != (b < 0.0));
                // An exact multiple but for one rounding, so the nearest whole number is the quotient.
                let near = (a - rest) / b - if down { 1.0 } else { 0.0 };
                let floor = near.floor();
                let whole = if near - floor > 0.5 { floor + 1.0 } else { floor };
                let plain = a / b;
                if b == 0.0 { plain } else if near == 0.0 { (0.0 * plain).copysign(plain) } else { whole }
            }
            #[inline(always)]
            fn trunc_remainder(self, divisor: Self) -> Self {
                self % divisor
            }
            #[inline(always)]
            fn floor_remainder(self, divisor: Self) -> Self {
                let (a, b) = (self, divisor);
                let rest = a % b;
                if rest != 0.0 && ((rest < 0.0) != (b < 0.0)) { rest + b } else { rest }
            }
            fn refuse_zeros(_: &Call, _: usize) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}
real!(f32, f64);

/// Whether any element is as `test` says. What is repeated along every dimension is looked at once.
pub fn any<T: Plain>(view: View<'_, T>, test: impl Fn(T) -> bool) -> bool {
    if view.sizes().iter().zip(view.strides()).all(|(&n, &s)| n == 1 || (s == 0 && n != 0)) {
        return view.iter().take(1).any(test);
    }
    match view.as_slice() {
        Some(slice) => slice.iter().any(|&x| test(x)),
        None => view.iter().any(test),
    }
}

#[cold]
fn zero_divisor() -> Error {
    Error::InvalidArgument {
        argument: "other",
        expected: "integers other than 0".into(),
        got: "a 0: an integer divided by zero is none; divide floats, or replace the zeros first".into(),
    }
}

/// Whether any exponent of an integer power is negative.
pub fn any_negative<T: Int>(view: View<'_, T>) -> bool {
    T::MIN != T::from_i64(0) && any(view, |x| x < T::from_i64(0))
}
