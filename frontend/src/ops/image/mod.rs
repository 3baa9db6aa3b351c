//! Image ops: rearrangement, sliding windows and resampling.

mod calls;
mod geometry;
mod grid_taps;
mod options;

pub use options::{
    GridMode, GridOptions, GridPadding, InterpolateMode, InterpolateOptions, Resize, UnfoldOptions,
};

crate::ops::family! {
    affine_grid,
    channel_shuffle,
    col2im,
    grid_sample,
    grid_sample_grid_grad,
    grid_sample_input_grad,
    im2col,
    interpolate,
    interpolate_backward,
    pixel_shuffle,
    pixel_unshuffle,
}
