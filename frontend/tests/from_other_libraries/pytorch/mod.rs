//! The table of PyTorch's names.

mod create;
mod math;
mod nn;
mod shape;
mod train;

use crate::page::Page;

pub fn page() -> Page {
    Page {
        library: "PyTorch",
        file: "from_pytorch",
        opening: OPENING,
        sections: vec![
            create::create(),
            create::kinds(),
            create::random(),
            shape::shape(),
            shape::index(),
            math::pointwise(),
            math::reduce(),
            math::linalg(),
            nn::layers(),
            nn::modules(),
            nn::functions(),
            nn::losses(),
            train::optimizers(),
            train::gradients(),
            train::sparse(),
            train::around(),
            create::memory(),
        ],
        absent: ABSENT,
    }
}

const OPENING: &str = "opening";

const ABSENT: &[(&str, &str)] = &[("a", "b")];
