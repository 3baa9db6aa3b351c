//! `logical_and`, `logical_or` and `logical_xor`, on truth values only: the host converts the arguments.

use keyway_cpu_loops::{CallExt, Cost};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::register_kernel;

fn and(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: bool, b: bool| a & b)
}

fn or(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: bool, b: bool| a | b)
}

fn xor(call: &Call) -> Result<(), Error> {
    call.map2(Cost::Cheap, |a: bool, b: bool| a ^ b)
}

register_kernel! { op: "logical_and", signature: "TT>T", device: "cpu", layout: "strided", bool => and }
register_kernel! { op: "logical_or", signature: "TT>T", device: "cpu", layout: "strided", bool => or }
register_kernel! { op: "logical_xor", signature: "TT>T", device: "cpu", layout: "strided", bool => xor }
