//! Long graphs: running backward over a chain of any kind and dropping it take no stack for each link.

use keyway::autograd::{self, Context, Function};
use keyway::{Result, Tensor};

/// Links of a chain: a function that calls itself for each link would need 50 bytes of stack at the very least for one, and
/// so three times the stack that there is. `KEYWAY_TEST_LINKS` sets another number.
fn links() -> usize {
    std::env::var("KEYWAY_TEST_LINKS").map_or(60_000, |links| links.parse().unwrap())
}

/// Runs a test on a stack of 1 MiB, independent of the stack of the runner's threads.
fn on_small_stack(test: impl FnOnce() -> Result<()> + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(test).unwrap().join().unwrap().unwrap();
}

fn leaf(value: f32) -> Tensor {
    Tensor::new(value).unwrap().requires_grad_(true).unwrap()
}

/// Builds a chain twice: one is dropped without backward, the other after it. The gradient of the leaf is `expected`.
fn check(expected: f32, chain: impl Fn(&Tensor) -> Result<Tensor> + Send + 'static) {
    on_small_stack(move || {
        let x = leaf(1.0);
        drop(chain(&x)?);
        let end = chain(&x)?;
        end.backward()?;
        assert_eq!(x.grad().unwrap().item::<f32>()?, expected);
        Ok(())
    });
}

#[test]
fn a_chain_of_ops() {
    check(1.0, |x| (0..links()).try_fold(x.clone(), |y, _| y.add(1)));
}

#[test]
fn a_chain_of_ops_that_save_their_inputs() {
    let one = Tensor::new(1.0f32).unwrap();
    check(1.0, move |x| (0..links()).try_fold(x.clone(), |y, _| y.mul(&one)?.pow(1)));
}

#[test]
fn a_chain_of_writes_to_views() {
    check(1.0, |x| {
        let base = Tensor::new([0.0f32, 0.0])?.add(x)?;
        for _ in 0..links() {
            base.select(0, 0)?.add_(1)?;
        }
        base.select(0, 0)
    });
}

#[test]
fn a_chain_of_writes_to_one_view() {
    check(1.0, |x| {
        let base = Tensor::new([0.0f32, 0.0])?.add(x)?;
        let view = base.select(0, 1)?;
        let one = Tensor::new(1.0f32)?;
        for _ in 0..links() {
            view.mul_(&one)?;
        }
        Ok(view)
    });
}

struct Twice;

impl Function for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }
    fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        context.save(&[&inputs[0]]);
        Ok(vec![inputs[0].copy()?])
    }
    fn backward(&self, _: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].clone())])
    }
}

#[test]
fn a_chain_of_functions() {
    check(1.0, |x| (0..links()).try_fold(x.clone(), |y, _| Ok(autograd::apply(Twice, &[y])?.swap_remove(0))));
}

/// A function that keeps a tensor itself, beside its inputs.
struct Keeps(Tensor);

impl Function for Keeps {
    fn name(&self) -> &'static str {
        "keeps"
    }
    fn forward(&self, _: &mut Context, _: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![self.0.copy()?])
    }
    fn backward(&self, _: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].clone())])
    }
}

#[test]
fn a_chain_through_what_functions_keep() {
    check(1.0, |x| {
        (0..links()).try_fold(x.clone(), |y, _| {
            Ok(autograd::apply(Keeps(y), std::slice::from_ref(x))?.swap_remove(0))
        })
    });
}

#[test]
fn a_chain_of_checkpoints() {
    check(1.0, |x| {
        (0..links() / 2).try_fold(x.clone(), |y, _| {
            Ok(autograd::checkpoint(|inputs| Ok(vec![inputs[0].add(1)?]), &[y])?.swap_remove(0))
        })
    });
}

/// A tensor with a hook that keeps another.
fn hooked(tensor: Tensor, kept: Tensor) -> Result<Tensor> {
    tensor
        .register_hook(move |_| {
            assert_eq!(kept.elem_count(), 1);
            Ok(None)
        })?
        .keep();
    Ok(tensor)
}

#[test]
fn a_chain_through_hooks_of_results() {
    check(1.0, |x| (0..links()).try_fold(x.clone(), |y, _| hooked(x.add(1)?, y)));
}

#[test]
fn a_chain_through_hooks_of_results_and_ops() {
    check(1.0, |x| (0..links()).try_fold(x.clone(), |y, _| hooked(y.add(1)?, y)));
}

#[test]
fn a_chain_through_hooks_of_leaves() {
    check(1.0, |x| {
        let last = (0..links()).try_fold(x.clone(), |y, _| hooked(leaf(0.0), y))?;
        x.add(&last)
    });
}

#[test]
fn a_chain_of_gradients() {
    check(1.0, |x| {
        let last = (0..links()).try_fold(x.clone(), |y, _| {
            let next = leaf(0.0);
            next.set_grad(y)?;
            Ok::<_, keyway::Error>(next)
        })?;
        x.add(&last.detach())
    });
}

#[test]
fn a_chain_of_saved_tensors_that_got_a_history_later() {
    check(1.0, |x| {
        let first = Tensor::new(0.0f32)?;
        let mut saved = first.clone();
        let mut product = x.mul(&saved)?;
        for _ in 0..links() {
            let next = Tensor::new(0.0f32)?;
            let later = x.mul(&next)?;
            next.add_(&product)?;
            (saved, product) = (next, later);
        }
        drop((saved, product));
        x.add(&first)
    });
}

#[test]
fn a_chain_that_ends_with_its_thread() {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Tensor>> = const { std::cell::RefCell::new(None) };
    }
    on_small_stack(|| {
        KEPT.with(|kept| drop(kept.take()));
        let x = leaf(1.0);
        let last = (0..links()).try_fold(x.clone(), |y, _| hooked(x.add(1)?, y))?;
        KEPT.with(|kept| kept.replace(Some(last)));
        Ok(())
    });
}

#[test]
fn a_chain_of_memory_that_is_owned_by_memory() {
    /// Numbers that keep a tensor.
    struct Owner(Vec<f32>, #[allow(dead_code, reason = "it is only kept")] Tensor);
    impl AsRef<[f32]> for Owner {
        fn as_ref(&self) -> &[f32] {
            &self.0
        }
    }
    on_small_stack(|| {
        let first = Tensor::new(1.0f32)?;
        let last = (0..links()).try_fold(first, |kept, _| Tensor::from_owner(Owner(vec![1.0], kept), [1]))?;
        assert_eq!(last.item::<f32>()?, 1.0);
        drop(last);
        Ok(())
    });
}

#[test]
fn passes_that_begin_passes_come_to_an_end() {
    fn backward(x: &Tensor) -> Result<()> {
        let _recorded = autograd::enable_grad();
        let (y, again) = (x.mul(2.0)?, x.clone());
        y.register_hook(move |_| backward(&again).map(|()| None))?.keep();
        y.backward()
    }
    on_small_stack(|| {
        let error = backward(&leaf(1.0)).unwrap_err().to_string();
        assert!(error.contains("at most 100 backward passes within each other"), "{error}");
        assert!(leaf(1.0).mul(2.0)?.backward().is_ok(), "the next pass is one of its own");
        Ok(())
    });
}
