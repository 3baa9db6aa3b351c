//! Tensors with physical units: a handler of the program, which is the fourth way to extend it, beside devices, layouts and
//! dtypes.
//!
//! A unit is propagated through ops to their results. The handler has rules for a few ops; composite ops are handled through
//! their parts, and an op without a rule is an error, never a wrong unit.

use keyway::interceptor::{Call, Interceptor};
use keyway::prelude::*;
use keyway::{Arg, Error, Result};
use std::fmt;
use std::sync::OnceLock;

/// Powers of metre, second and kilogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unit([i32; 3]);

pub const NONE: Unit = Unit([0, 0, 0]);
pub const METRE: Unit = Unit([1, 0, 0]);
pub const SECOND: Unit = Unit([0, 1, 0]);
pub const KILOGRAM: Unit = Unit([0, 0, 1]);

impl Unit {
    fn times(self, other: Unit) -> Unit {
        Unit(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    fn to_the(self, power: i32) -> Unit {
        Unit(self.0.map(|p| p * power))
    }

    fn root(self) -> Result<Unit> {
        match self.0.iter().all(|p| p % 2 == 0) {
            true => Ok(Unit(self.0.map(|p| p / 2))),
            false => Err(Error::other(format!("sqrt: `{self}` has no root"))),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = ["m", "s", "kg"].iter().zip(self.0).filter(|(_, power)| *power != 0);
        let parts: Vec<String> = parts
            .map(|(name, power)| if power == 1 { name.to_string() } else { format!("{name}^{power}") })
            .collect();
        f.write_str(if parts.is_empty() { "1" } else { "" })?;
        f.write_str(&parts.join(" "))
    }
}

/// The handler, registered at first use.
pub fn units() -> Interceptor {
    static UNITS: OnceLock<Interceptor> = OnceLock::new();
    *UNITS.get_or_init(|| {
        Interceptor::register("units", handle).expect("the first interceptor of this program")
    })
}

/// The tensor, with this unit attached.
pub fn with_unit(tensor: &Tensor, unit: Unit) -> Tensor {
    units().attach(tensor, unit);
    tensor.clone()
}

/// The unit of a tensor; 1 for a plain one.
pub fn unit_of(tensor: &Tensor) -> Unit {
    units().extension::<Unit>(tensor).map_or(NONE, |unit| *unit)
}

fn handle(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let of: Vec<Unit> = call.extensions::<Unit>().into_iter().map(|u| u.map_or(NONE, |u| *u)).collect();
    let first = of.first().copied().unwrap_or(NONE);
    // A scalar argument has no unit.
    let is_number = |name| matches!(call.argument(name), Some(Arg::Float(_) | Arg::Int(_)));
    let numbers = is_number("self") || is_number("other");
    let equal = |of: &[Unit]| {
        let first = of.first().copied().unwrap_or(NONE);
        match of.iter().find(|unit| **unit != first || (numbers && first != NONE)) {
            None => Ok(first),
            Some(other) if numbers => Err(Error::other(format!("{}: `{other}` and a number", call.op()))),
            Some(other) => Err(Error::other(format!("{}: `{first}` and `{other}`", call.op()))),
        }
    };
    let alike = || equal(&of);
    let unit = match call.op() {
        "mul" | "mm" | "bmm" | "mv" | "dot" | "outer" => of.iter().fold(NONE, |all, unit| all.times(*unit)),
        "div" if is_number("self") => first.to_the(-1),
        "div" => of.iter().skip(1).fold(first, |all, unit| all.times(unit.to_the(-1))),
        "square" => first.to_the(2),
        "reciprocal" => first.to_the(-1),
        "sqrt" => first.root()?,
        "add" | "sub" | "maximum" | "minimum" | "cat" | "stack" => alike()?,
        // The first argument is the condition.
        "where" => equal(of.get(1..).unwrap_or_default())?,
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => {
            alike()?;
            return call.run();
        }
        // The overwritten tensor must have that unit, see below.
        "copy" => of.last().copied().unwrap_or(NONE),
        "neg" | "abs" | "relu" | "sum" | "mean" | "amax" | "amin" | "cumsum" | "clone" | "to_dtype"
        | "view" | "reshape" | "expand" | "transpose" | "permute" | "select" | "slice" | "unsqueeze"
        | "squeeze" => first,
        _ if call.has_parts() => return call.run_parts(),
        _ if of.iter().all(|unit| *unit == NONE) => NONE,
        op => return Err(Error::other(format!("{op}: no rule for a tensor in `{first}`"))),
    };
    // A view that is written to is a part of a tensor whose unit stays.
    if call.is_in_place() && unit != first {
        return Err(Error::other(format!("{}_: `{first}` would become `{unit}`", call.op())));
    }
    let made = call.run()?;
    made.iter().for_each(|t| units().attach(t, unit));
    Ok(made)
}

fn main() -> Result<()> {
    // A falling body: height, velocity, energy.
    let time = with_unit(&Tensor::linspace(0.0, 2.0, 5)?, SECOND);
    let gravity = with_unit(&Tensor::new(9.81f32)?, METRE.times(SECOND.to_the(-2)));
    let mass = with_unit(&Tensor::new(2.0f32)?, KILOGRAM);
    let fallen = ((&gravity * time.square()?)? * 0.5)?;
    let velocity = (&gravity * &time)?;
    let energy = ((&mass * velocity.square()?)? * 0.5)?;
    for (what, t) in [("time", &time), ("fallen", &fallen), ("velocity", &velocity), ("energy", &energy)] {
        println!("{what} in {}:\n{t}", unit_of(t));
    }
    if let Err(error) = &fallen + &time {
        println!("fallen + time: {error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_travel() -> Result<()> {
        main()?;
        let speed = METRE.times(SECOND.to_the(-1));
        let (path, time) = (with_unit(&Tensor::ones(3)?, METRE), with_unit(&Tensor::ones(3)?, SECOND));
        let velocity = (&path / &time)?;
        assert_eq!((unit_of(&velocity), unit_of(&velocity).to_string().as_str()), (speed, "m s^-1"));
        assert_eq!(unit_of(&velocity.square()?.sum_all()?.sqrt()?), speed);
        // Through the parts of composite ops.
        assert_eq!(unit_of(&path.mse_loss(&path)?), METRE.to_the(2));
        assert_eq!(unit_of(&path.diff(0)?), METRE);
        assert_eq!(unit_of(&(&path / &path)?.exp()?), NONE);
        assert_eq!(unit_of(&(1.0 / &time)?), SECOND.to_the(-1));
        assert_eq!(unit_of(&path.gt(&path)?.where_cond(&path, &path)?), METRE);
        Ok(())
    }

    #[test]
    fn what_has_no_meaning_is_refused() -> Result<()> {
        let (path, time) = (with_unit(&Tensor::ones(3)?, METRE), with_unit(&Tensor::ones(3)?, SECOND));
        let refused = |made: Result<Tensor>| made.unwrap_err().to_string();
        assert_eq!(refused(&path + &time), "add: `m` and `s`");
        assert_eq!(refused(&path + 1.0), "add: `m` and a number");
        assert_eq!(refused(1.0 - &path), "sub: `m` and a number");
        assert_eq!(refused(path.i(0)?.mul_(&time.i(0)?)), "mul_: `m` would become `m s`");
        assert_eq!(refused(Tensor::zeros(3)?.copy_(&path)), "copy_: `1` would become `m`");
        assert_eq!(refused(path.exp()), "exp: no rule for a tensor in `m`");
        assert_eq!(refused(path.sqrt()), "sqrt: `m` has no root");
        Ok(())
    }

    /// The graph is below the handler: gradients are computed without units.
    #[test]
    fn gradients_are_plain() -> Result<()> {
        let path = Tensor::new([3.0f32])?.requires_grad_(true)?;
        with_unit(&path, METRE).square()?.sum_all()?.backward()?;
        assert_eq!(path.grad().unwrap().to_vec::<f32>()?, [6.0]);
        assert_eq!(unit_of(&path.grad().unwrap()), NONE);
        Ok(())
    }
}
