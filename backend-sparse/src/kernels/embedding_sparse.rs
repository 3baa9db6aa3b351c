//! `embedding_sparse`: calls `embedding`, with any kernel. It is a kernel of this library, so that the forward pass fails
//! if its gradient could not be stored. Scratch: that of `embedding`.

use crate::coo::one;
use keyway_sdk::author::{Arg, Call, Error};

fn embedding_sparse(call: &Call<'_>) -> Result<(), Error> {
    let padding = if call.is_none(2)? { Arg::None } else { Arg::Int(call.int(2)?) };
    call.set_output(
        0,
        one("embedding", &[Arg::Tensor(call.tensor(0)?), Arg::Tensor(call.tensor(1)?), padding])?,
    )
}

kernel!("embedding_sparse", "TTi>T", "strided", embedding_sparse);
