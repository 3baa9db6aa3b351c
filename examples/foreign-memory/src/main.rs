//! Grabs an image, looks at it without a copy, and gives the buffer back from another thread.

use foreign_memory::{brightest, expose, grab, lent};

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
    Ok(())
}
