//! COO tensors for tests: `test.keyway/coo`, with a few kernels that are correct and slow, unless `KEYWAY_FAULT` selects
//! one of `FAULTS`: typical bugs of sparse libraries, which the conformance suite must detect.

mod entries;
mod kernels;
mod layout;

use keyway_test_faults::{self as faults, Fault};

const FAULTS: [Fault; 22] = [
    Fault::of_ops("coo_duplicate_dropped", &["coalesce"], "of entries of one place the last alone stays"),
    Fault::of_ops("coo_entries_squared", &["square"], "an op that is not linear is applied to each entry"),
    Fault::of_ops("coo_order_assumed", &["mm"], "a product takes entries to come in the order of rows"),
    Fault::of_ops("coo_index_off", &["mm"], "a product takes each entry to lie in the next column"),
    Fault::of_ops(
        "coo_stale_flag",
        &["neg"],
        "a result with several entries for one place counts as coalesced",
    ),
    Fault::of_ops("coo_zeros_ignored", &["amax"], "the greatest is one of the stored elements"),
    Fault::of_ops("coo_single_lost", &["coalesce"], "a tensor of one entry is taken to have none"),
    Fault::of_ops("coo_last_lost", &["mm"], "the last entry is lost where every element is stored"),
    Fault::of_ops("coo_gaps_ignored", &["neg"], "values are read as if they had no gaps between them"),
    Fault::of_ops("coo_blocks_stale_flag", &["neg"], "several blocks for one place count as coalesced"),
    Fault::of_ops("coo_stored_zero_dropped", &["sparse_mask"], "a place where a zero is stored is no place"),
    Fault::of_families(
        "coo_gradient_lost",
        &["layout_grads"],
        "of several entries at one place the first alone has a gradient",
    ),
    Fault::of_families(
        "coo_column_lost",
        &["layout"],
        "ops that are made of a product by one column lose the last entry",
    ),
    Fault::of_families("coo_flag_unchecked", &["layout"], "a false flag `coalesced` is taken"),
    Fault::of_families("coo_count_unchecked", &["layout"], "more indices than values are taken"),
    Fault::of_families(
        "coo_rank_unchecked",
        &["layout"],
        "components of another number of dimensions are taken",
    ),
    Fault::of_families("coo_dtype_unchecked", &["layout"], "components of other dtypes are taken"),
    Fault::of_families("coo_unchecked", &["layout"], "indices beyond the sizes are taken"),
    Fault::of_families("coo_many_lost", &["large"], "a product leaves out the entries beyond the 1,000th"),
    Fault::of_families(
        "coo_indices_packed",
        &["strided"],
        "column-major indices are read as if they were row-major",
    ),
    Fault::of_families("coo_scratch_shared", &["threads"], "all threads sum products in one buffer"),
    Fault::of_families(
        "coo_cancelled_kept",
        &["values"],
        "of entries of one coordinate whose sum is 0, the first remains",
    ),
];

keyway_sdk::plugin! {
    name: "keyway.test/coo",
    version: env!("CARGO_PKG_VERSION"),
    description: "Tensors as coordinates",
    devices: ["cpu"],
    layouts: ["test.keyway/coo"],
    setup: |contents| {
        faults::announce(FAULTS).map_err(|detail| keyway_sdk::Error::Failed { detail })?;
        layout::learn_number()?;
        contents.layout(&layout::API).layout_ops(&layout::OPS);
        Ok(())
    },
}
