//! stub
use crate::failure::Failure;
use crate::screen::Screen;
use std::path::PathBuf;
/// stub
#[derive(clap::Args)]
pub struct Options {}
/// stub
pub fn run(_: &Options, _: &[PathBuf], _: &mut Screen) -> Result<(), Failure> { Ok(()) }
