//! Tensors and models in files.

use crate::values;
use keyway::nn::{BatchNorm1d, Linear, Sequential};
use keyway::prelude::*;

#[test]
fn a_tensor() -> keyway::Result<()> {
    let folder = tempfile::tempdir()?;
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    for name in ["x.safetensors", "x.npy", "x.NPY", "x"] {
        let path = folder.path().join(name);
        x.save(&path)?;
        let read = Tensor::load(&path)?;
        assert_eq!((read.shape(), values(Ok(read.clone()))), (x.shape(), values(Ok(x.clone()))), "{name}");
    }
    let path = folder.path().join("candle.safetensors");
    x.save_safetensors("x", &path)?;
    assert_eq!(keyway::io::safetensors::load(&path)?["x"].shape(), [2, 2]);
    let path = folder.path().join("candle.npy");
    x.write_npy(&path)?;
    assert_eq!(Tensor::read_npy(&path)?.shape(), [2, 2]);
    Ok(())
}

#[test]
fn a_file_of_several_tensors_is_no_tensor() -> keyway::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("two.safetensors");
    let two = [("a".to_string(), Tensor::ones(1)?), ("b".to_string(), Tensor::ones(2)?)];
    keyway::io::safetensors::save(&path, &two.into())?;
    let message = Tensor::load(&path).unwrap_err().to_string();
    assert!(message.contains("2 tensors") && message.contains("io::safetensors::load"), "{message}");
    keyway::io::safetensors::save(&path, &Default::default())?;
    let message = Tensor::load(&path).unwrap_err().to_string();
    assert!(message.contains("0 tensors"), "{message}");
    assert!(Tensor::load(folder.path().join("none.npy")).is_err());
    Ok(())
}

#[test]
fn a_model() -> keyway::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.safetensors");
    let model =
        || Ok::<_, keyway::Error>(Sequential::new().add(Linear::new(3, 2)?).add(BatchNorm1d::new(2)?));
    let (first, second) = (model()?, model()?);
    let x = Tensor::randn((4, 3))?;
    first.forward(&x)?;
    first.save(&path)?;
    second.load(&path)?;
    first.eval();
    second.eval();
    assert_eq!(values(first.forward(&x)), values(second.forward(&x)));
    let boxed: Box<dyn Module> = Box::new(second);
    boxed.save(&path)?;
    boxed.load(&path)?;
    assert!(Linear::new(3, 2)?.load(&path).is_err(), "other names");
    assert!(first.save(folder.path().join("none").join("model.safetensors")).is_err());
    Ok(())
}
