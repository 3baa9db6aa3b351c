//! The stiffness of springs from measured displacements: least squares by gradients through `solve`.
//!
//! A chain of `n` springs is fixed at one end. Under the forces `f` its nodes move by the solution `u` of `K u = f` with the stiffness
//! matrix `K = Bᵀ diag(k) B`, where `B` takes differences of neighbours. The program finds `k` from `f` and `u`, by minimising the
//! squared error of the elongations `B u` over the logarithms of `k`. It needs the library `keyway-linalg`.

use keyway::optim::{Adam, AdamOptions, Optimizer};
use keyway::prelude::*;

/// The matrix that takes the differences of neighbouring nodes, the first one from the fixed end.
fn differences(n: usize) -> keyway::Result<Tensor> {
    let ones = Tensor::eye_with(n, n, DType::F64)?;
    ones.sub(&ones.roll(1, 0)?.tril()?)
}

/// The elongations of the springs under forces, of shape `[n, cases]`: the differences of the nodes' displacements.
fn elongations(b: &Tensor, k: &Tensor, forces: &Tensor) -> keyway::Result<Tensor> {
    let stiffness = b.t()?.mul(k)?.mm(b)?;
    b.mm(&stiffness.solve(forces)?)
}

/// The greatest relative error of the stiffness that was found for `n` springs.
fn find(n: usize, steps: usize) -> keyway::Result<f64> {
    keyway::manual_seed(0);
    let b = differences(n)?;
    let expected = Tensor::rand_with(n, DType::F64)?.mul(4.0)?.add(1.0)?;
    let forces = Tensor::randn_with((n, 2 * n), DType::F64)?;
    let measured = elongations(&b, &expected, &forces)?;

    let logarithms = Tensor::zeros_with(n, DType::F64)?.requires_grad_(true)?;
    let mut adam = Adam::new(vec![logarithms.clone()], AdamOptions { lr: 0.05, ..AdamOptions::default() })?;
    for step in 0..steps {
        adam.zero_grad();
        let loss = elongations(&b, &logarithms.exp()?, &forces)?.mse_loss(&measured)?;
        loss.backward()?;
        adam.step()?;
        if step % 100 == 0 {
            println!("step {step:4}: mean squared error {:.2e}", loss.item::<f64>()?);
        }
    }
    let _off = no_grad();
    logarithms.exp()?.sub(&expected)?.div(&expected)?.abs()?.max_all()?.item()
}

fn main() -> keyway::Result<()> {
    Ok(println!("the stiffness of each of 12 springs is right to {:.1e}", find(12, 800)?))
}

#[test]
fn the_stiffness_is_found() -> keyway::Result<()> {
    let error = find(6, 500)?;
    assert!(error < 1e-3, "{error}");
    Ok(())
}
