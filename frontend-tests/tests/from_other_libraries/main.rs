//! The pages `keyway::guide::from_pytorch` and `from_candle`: their tables are the rows here, each of which is compiled and
//! run. `KEYWAY_BLESS=1 cargo test -p keyway-tests --test from_other_libraries` rewrites the pages.

mod aliases;
mod candle;
mod page;
mod pytorch;
mod table;
mod value;

use page::Page;

fn pages() -> [Page; 2] {
    [pytorch::page(), candle::page()]
}

#[test]
fn every_row_runs() {
    table::load_backends();
    let mut failed = Vec::new();
    for page in pages() {
        let ran: Vec<table::Ran> = page.sections.iter().flat_map(|section| (section.run)()).collect();
        assert_eq!(ran.len(), page.rows(), "every row of {} is run", page.library);
        let errors = ran.iter().filter_map(|ran| Some((ran, ran.outcome.as_ref().err()?)));
        failed.extend(errors.map(|(ran, error)| format!("{}: {}: {error}", page.library, ran.left)));
        value::write(page.file, &page.sections, &ran);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_pages_hold_three_hundred_names() {
    for (page, least) in pages().iter().zip([240, 90]) {
        let mut names: Vec<&str> =
            page.sections.iter().flat_map(|s| s.rows.iter().map(|row| row.left)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name of {} is in two rows", page.library);
        assert!(count >= least, "{count} rows for {}", page.library);
    }
}
