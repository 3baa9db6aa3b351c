//! Questions about two elements.

use super::Kernel;
use super::elements::Taken;
use super::map::map;
use keyway_sdk::author::{Call, Error};

family!("compare");

fn binary(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    map(call, kernel, [0, 1], Taken::Rounded, [0; 3])
}
