//! Views: a tensor's shape, strides and offset over a shared storage.

use keyway::prelude::*;

/// Shape, strides and offset, in elements.
fn show(what: &str, t: &Tensor) -> keyway::Result<()> {
    println!("{what:34} shape {:?}, strides {:?}, offset {}", t.shape(), t.strides(), t.storage_offset());
    Ok(())
}

fn main() -> keyway::Result<()> {
    let x = Tensor::arange(0, 12)?.reshape((3, 4))?;
    println!("{x}");
    show("x", &x)?;
    show("x.t()", &x.t()?)?;
    show("x.i((1, ..))", &x.i((1, ..))?)?;
    show("x.i((.., 1..3))", &x.i((.., 1..3))?)?;
    show("x.unsqueeze(1)", &x.unsqueeze(1)?)?;
    show("x.i((1, ..)).expand((5, 4))", &x.i((1, ..))?.expand((5, 4))?)?;
    show("windows of 2: x.unfold(1, 2, 1)", &x.unfold(1, 2, 1)?)?;
    show("the diagonal", &x.diagonal()?)?;
    println!("x.t() shares the storage of x: {}", x.t()?.shares_storage(&x));

    // An in-place change is visible in every view.
    x.i((.., 1..3))?.fill_(0)?;
    println!("after a change of its middle:\n{x}");

    // A shape that strides cannot express is a copy.
    let flat = x.t()?.reshape(12)?;
    println!("x.t().reshape(12) shares the storage of x: {}", flat.shares_storage(&x));

    // A memory format is an order of strides; the shape stays batch, channels, rows, columns.
    let images = Tensor::zeros((2, 3, 4, 5))?;
    show("images", &images)?;
    show("images in channels_last", &images.to(MemoryFormat::ChannelsLast)?)
}

#[test]
fn views_are_geometry() -> keyway::Result<()> {
    main()?;
    let x = Tensor::arange(0, 12)?.reshape((3, 4))?;
    assert_eq!((x.t()?.shape(), x.t()?.strides()), (&[4usize, 3][..], &[1usize, 4][..]));
    assert_eq!((x.i((1, ..))?.storage_offset(), x.i((1, ..))?.strides()), (4, &[1usize][..]));
    assert_eq!(x.i((1, ..))?.expand((5, 4))?.strides(), [0, 1]);
    assert_eq!(x.unfold(1, 2, 1)?.to_vec3::<i64>()?[0], [[0, 1], [1, 2], [2, 3]]);
    assert!(x.t()?.shares_storage(&x) && !x.t()?.reshape(12)?.shares_storage(&x));
    x.i((.., 1..3))?.fill_(0)?;
    assert_eq!(x.to_vec2::<i64>()?[0], [0, 0, 0, 3]);
    let images = Tensor::zeros((2, 3, 4, 5))?.to(MemoryFormat::ChannelsLast)?;
    assert_eq!(images.strides(), [60, 1, 15, 3]);
    Ok(())
}
