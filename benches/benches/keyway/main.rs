//! The measured cases. `cargo xtask bench` runs them and prints one JSON line each.

mod elementwise;
mod image;
mod limit;
mod overhead;
mod product;
mod reduction;
mod sparse;
mod train;

use keyway_benches::{criterion, threads};

fn main() {
    keyway_dispatcher::parallel::set_num_threads(threads());
    keyway_dispatcher::parallel::adopt_current_thread();
    let mut c = criterion();
    limit::cases(&mut c);
    overhead::cases(&mut c);
    elementwise::cases(&mut c);
    reduction::cases(&mut c);
    product::cases(&mut c);
    train::cases(&mut c);
    image::cases(&mut c);
    sparse::cases(&mut c);
    c.final_summary();
}
