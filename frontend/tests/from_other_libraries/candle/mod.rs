//! The table of candle's names.

mod core;
mod nn;

use crate::page::Page;

pub fn page() -> Page {
    Page {
        library: "candle",
        file: "from_candle",
        opening: OPENING,
        sections: vec![
            core::create(),
            core::kinds(),
            core::shape(),
            core::math(),
            core::images(),
            nn::gradients(),
            nn::modules(),
            nn::functions(),
        ],
        absent: ABSENT,
    }
}

const OPENING: &str = "opening";

const ABSENT: &[(&str, &str)] = &[];
