//! The table of candle's names.

use crate::page::Page;

pub fn page() -> Page {
    Page { library: "candle", file: "from_candle", opening: "", sections: vec![], absent: &[] }
}
