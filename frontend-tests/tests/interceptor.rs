//! Interceptors of a program's own: what their handlers see, and what tensors carry.

use keyway::autograd::{Context, Function, apply, checkpoint};
use keyway::interceptor::{Call, Interceptor};
use keyway::prelude::*;
use keyway::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard};

/// The calls that reached a handler; a program may have eight handlers.
type Log = Arc<Mutex<Vec<&'static str>>>;

fn logging(name: &str, handler: fn(&Call<'_>) -> Result<Vec<Tensor>>) -> (Interceptor, Log) {
    let log = Log::default();
    let written = log.clone();
    let interceptor = Interceptor::register(name, move |call| {
        written.lock().unwrap().push(call.op());
        handler(call)
    });
    (interceptor.unwrap(), log)
}

fn came(log: &Log) -> Vec<&'static str> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Results carry the names of what they were computed from.
fn named() -> (Interceptor, &'static Log, MutexGuard<'static, ()>) {
    use std::sync::OnceLock;
    static NAMED: OnceLock<(Interceptor, Log)> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (interceptor, log) = NAMED.get_or_init(|| {
        logging("named", |call| {
            let names = call.extensions::<String>().into_iter().flatten();
            let name =
                format!("{}({})", call.op(), names.map(|n| n.to_string()).collect::<Vec<_>>().join(","));
            let made = call.run()?;
            made.iter().for_each(|t| call.interceptor().attach(t, name.clone()));
            Ok(made)
        })
    });
    came(log);
    (*interceptor, log, one)
}

fn name(of: Interceptor, t: &Tensor) -> String {
    of.extension::<String>(t).map_or_else(|| "-".to_string(), |name| name.to_string())
}

#[test]
fn payloads_travel_through_ops_and_out_of_them() -> Result<()> {
    let (named, log, _one) = named();
    let (x, y) = (Tensor::ones((2, 3))?, Tensor::ones((2, 3))?);
    named.attach(&x, "x".to_string());
    let sum = x.add(&y)?;
    assert_eq!(name(named, &sum), "add(x)");
    assert_eq!(name(named, &sum.mul(&x)?), "mul(add(x),x)");
    assert_eq!(name(named, &Tensor::cat(&[&y, &x, &x], 0)?), "cat(x,x)");
    // All outputs of an op, a view, and a composed op, whose parts do not come.
    came(log);
    let (values, indices) = x.max(1)?;
    assert_eq!((name(named, &values), name(named, &indices)), ("max(x)".into(), "max(x)".into()));
    assert_eq!(name(named, &x.t()?), "transpose(x)");
    assert_eq!(name(named, &x.mse_loss(&y)?), "mse_loss(x)");
    assert_eq!(came(log), ["max", "transpose", "mse_loss"]);
    // The written tensor of in-place and `out=` calls gets the extension.
    let z = y.copy()?;
    z.add_(&x)?;
    assert_eq!(name(named, &z), "add(x)");
    let mut out = Tensor::zeros((2, 3))?;
    x.add_out(&y, &mut out)?;
    assert_eq!(name(named, &out), "add(x)");
    // Plain tensors do not reach it.
    came(log);
    y.add(&y)?;
    assert!(came(log).is_empty() && named.extension::<String>(&y).is_none());
    // A clone is the same tensor, a detached one takes the extension along; another type is none.
    assert_eq!((name(named, &x.clone()), name(named, &x.detach())), ("x".into(), "x".into()));
    assert!(named.extension::<u32>(&x).is_none());
    named.remove(&x);
    assert_eq!(name(named, &x.add(&y)?), "-");
    Ok(())
}

#[test]
fn autograd_is_below_and_backward_is_plain() -> Result<()> {
    let (named, log, _one) = named();
    let w = Tensor::new([2.0f64, 3.0])?.requires_grad_(true)?;
    named.attach(&w, "w".to_string());
    let y = w.mul(&w)?.exp()?;
    assert_eq!(name(named, &y), "exp(mul(w,w))");
    let loss = y.sum_all()?;
    came(log);
    loss.backward()?;
    assert!(came(log).is_empty(), "no handler in a backward pass");
    let grad = w.grad().unwrap();
    assert_eq!(name(named, &grad), "-");
    assert_eq!(grad.to_vec::<f64>()?, [4.0 * 4f64.exp(), 6.0 * 9f64.exp()]);
    // Calls that a checkpoint recomputes reach the handler as the first time.
    let body = |inputs: &[Tensor]| Ok(vec![inputs[0].sin()?.cos()?]);
    let made = checkpoint(body, std::slice::from_ref(&w))?.remove(0).sum_all()?;
    came(log);
    made.backward()?;
    assert_eq!(came(log), ["sin", "cos"]);
    Ok(())
}

#[test]
fn a_mode_sees_every_call_of_its_thread() -> Result<()> {
    let (named, log, _one) = named();
    let x = Tensor::ones(3)?;
    {
        let _on = named.enter();
        assert_eq!(name(named, &x.relu()?.neg()?), "neg(relu())");
        let elsewhere = std::thread::scope(|s| s.spawn(|| x.relu().map(|t| name(named, &t))).join().unwrap());
        assert_eq!(elsewhere?, "-");
        let _off = named.exclude();
        assert_eq!(name(named, &x.relu()?), "-");
    }
    assert_eq!(came(log), ["relu", "neg"]);
    Ok(())
}

#[test]
fn parts_arguments_and_other_tensors() -> Result<()> {
    let (parts, log) = logging("parts", |call| {
        if call.has_parts() {
            return call.run_parts();
        }
        match call.argument("dim") {
            Some(keyway::Arg::Int(dim)) if call.op() == "cumsum" => assert_eq!(dim, 1),
            _ => assert!(call.argument("no such").is_none()),
        }
        // f64 below, whatever came.
        let wide: Vec<Tensor> =
            call.tensors().iter().map(|t| t.to_dtype(DType::F64)).collect::<Result<_>>()?;
        let made = call.run_with(&wide)?;
        made.iter().for_each(|t| call.interceptor().attach(t, ()));
        Ok(made)
    });
    let x = Tensor::ones((2, 3))?;
    parts.attach(&x, ());
    assert_eq!(x.cumsum(1)?.dtype(), DType::F64);
    came(&log);
    let by_parts = x.mse_loss(&Tensor::zeros((2, 3))?)?;
    let seen = came(&log);
    assert_eq!(by_parts.to_dtype(DType::F64)?.item::<f64>()?, 1.0);
    assert!(seen[0] == "mse_loss" && seen.contains(&"add") && seen.contains(&"mul"), "{seen:?}");
    Ok(())
}

#[test]
fn results_are_the_handlers() -> Result<()> {
    let (constant, _) = logging("constant", |call| match call.op() {
        "relu" => Ok(vec![Tensor::full(2, 7.0)?]),
        "neg" => Err(Error::other("this program negates nothing")),
        // For an in-place call only the written tensor.
        "add" if call.is_in_place() => {
            call.run()?;
            Ok(vec![])
        }
        "sub" => Ok(vec![]),
        _ => call.run(),
    });
    let x = Tensor::zeros(2)?;
    constant.attach(&x, ());
    assert_eq!(x.relu()?.to_vec::<f32>()?, [7.0, 7.0]);
    let error = x.neg().unwrap_err();
    assert!(matches!(&error, Error::Other(_)) && error.to_string() == "this program negates nothing");
    x.add_(1.0)?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    let error = x.sub_(1.0).unwrap_err().to_string();
    assert!(error.contains("sub: an interceptor's handler ended an in-place"), "{error}");
    let error = x.sub(1.0).unwrap_err().to_string();
    assert_eq!(error, "sub: expected 1 results of an interceptor's handler, got 0");
    // A function of the program's own may end in an error of its own, too.
    struct Fails;
    impl Function for Fails {
        fn name(&self) -> &'static str {
            "fails"
        }
        fn forward(&self, _: &mut Context, _: &[Tensor]) -> Result<Vec<Tensor>> {
            Err(Error::other(std::io::Error::other("no table")))
        }
        fn backward(&self, _: &Context, _: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
            Ok(vec![])
        }
    }
    assert_eq!(apply(Fails, &[x]).unwrap_err().to_string(), "no table");
    Ok(())
}

#[test]
fn what_is_refused() -> Result<()> {
    let (misused, _) = logging("misused", |call| match call.op() {
        "relu" => call.run_with(&[]),
        "mul" => call.run_with(&call.tensors().iter().map(Tensor::copy).collect::<Result<Vec<_>>>()?),
        _ => call.run_parts(),
    });
    let x = Tensor::zeros(2)?;
    misused.attach(&x, ());
    let text = x.relu().unwrap_err().to_string();
    assert!(text.contains("`tensors` must be 1, as the call of `relu` has"), "{text}");
    let text = x.mul_(2.0).unwrap_err().to_string();
    assert!(text.contains("the first one as it came, which `mul` writes to in place"), "{text}");
    let text = x.copy().unwrap_err().to_string();
    assert!(text.contains("ask with `has_parts`"), "{text}");
    let again = Interceptor::register("misused", |call| call.run()).unwrap_err().to_string();
    assert!(again.contains("this program has registered one of this name"), "{again}");
    assert!(Interceptor::register(" ", |call| call.run()).is_err());
    assert_eq!(Interceptor::find("misused"), Some(misused));
    assert!(Interceptor::find("autograd").is_none() && Interceptor::find("nothing").is_none());
    Ok(())
}

/// A list of parents as an extension makes a chain as deep as a program computes.
#[test]
fn long_chains_of_payloads_are_dropped() -> Result<()> {
    let (parents, _) = logging("parents", |call| {
        let inputs = call.tensors();
        let made = call.run()?;
        made.iter().for_each(|t| call.interceptor().attach(t, inputs.clone()));
        Ok(made)
    });
    let mut x = Tensor::zeros(1)?;
    parents.attach(&x, Vec::<Tensor>::new());
    for _ in 0..100_000 {
        x = x.neg()?;
    }
    assert_eq!(parents.extension::<Vec<Tensor>>(&x).unwrap().len(), 1);
    drop(x);
    Ok(())
}

/// A handler that switches itself on again has an end.
#[test]
fn a_handler_that_comes_to_itself_is_an_error() -> Result<()> {
    let (endless, _) = logging("endless", |call| {
        let _on = call.interceptor().enter();
        call.tensors().iter().map(Tensor::neg).collect()
    });
    let x = Tensor::ones(1)?;
    endless.attach(&x, ());
    let text = x.neg().unwrap_err().to_string();
    assert!(text.contains("at most 100 handlers") && text.contains("Interceptor::exclude"), "{text}");
    endless.remove(&x);
    assert_eq!(x.neg()?.item::<f32>()?, -1.0);
    Ok(())
}
