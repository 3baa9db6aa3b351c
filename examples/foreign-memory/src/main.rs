//! Grabs an image, reads it without a copy, and releases the buffer on another thread.

use foreign_memory::{brightest, expose, grab, lent, mapped};

fn main() -> keyway::Result<()> {
    let mut image = grab(4, 6)?;
    expose(&mut image)?;
    let storage = image.storage()?;
    println!("{} bytes of `{}` at {:p}", storage.bytes(), storage.allocator(), storage.data_ptr());
    println!("{image}");
    if let Some(([i, j], value)) = brightest(&mut image)? {
        println!("brightest: {value} at row {i}, column {j}");
    }
    println!("buffers out: {}", lent());
    let last = std::thread::spawn(move || drop(image));
    last.join().expect("dropping an image does not panic");
    println!("buffers out: {}", lent());

    // Two values after a header of 8 bytes.
    let path = std::env::temp_dir().join(format!("foreign-memory-{}", std::process::id()));
    let numbers = [1.5f32, -2.0].map(f32::to_ne_bytes).concat();
    std::fs::write(&path, [b"weights ".as_slice(), &numbers].concat()).map_err(keyway::Error::other)?;
    let weights = mapped(&path, 8, &[2])?;
    println!("{weights} of `{}`", weights.storage()?.allocator());
    drop(weights);
    std::fs::remove_file(&path).map_err(keyway::Error::other)
}
