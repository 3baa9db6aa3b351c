//! The result of a row as JSON: for `beside_pytorch.py`, which compares it with the result of the left side in PyTorch.

use crate::table::{Ran, Section};
use keyway::prelude::*;
use serde_json::{Value, json};

/// A row's result. Types that have no inherent method here are nothing, by the trait [`Fallback`].
pub struct Seen<'a, T>(pub &'a T);

pub trait Fallback {
    fn value(&self) -> Value {
        Value::Null
    }
}

impl<T> Fallback for Seen<'_, T> {}

fn of_tensor(t: &Tensor) -> Value {
    let plain = t.detach().to_strided().and_then(|t| t.to_vec_f64());
    plain.map_or(Value::Null, |values| {
        let texts: Vec<String> = values.iter().map(f64::to_string).collect();
        json!({ "shape": t.shape(), "dtype": t.dtype().name(), "values": texts })
    })
}

macro_rules! seen {
    ($($type:ty: |$made:ident| $value:expr;)*) => {$(
        impl Seen<'_, $type> {
            pub fn value(&self) -> Value {
                let $made = self.0;
                $value
            }
        }
    )*};
}

seen! {
    Tensor: |t| of_tensor(t);
    Option<Tensor>: |t| t.as_ref().map_or(Value::Null, of_tensor);
    (Tensor, Tensor): |t| json!([of_tensor(&t.0), of_tensor(&t.1)]);
    Vec<Tensor>: |t| t.iter().map(of_tensor).collect();
    Vec<f32>: |v| json!(v);
    Vec<Vec<f32>>: |v| json!(v);
    &[usize]: |v| json!(v);
    usize: |v| json!(v);
    f32: |v| json!(v);
    bool: |v| json!(v);
}

/// Writes the results of a page where `KEYWAY_ROWS` names a folder.
pub fn write(page: &str, sections: &[Section], ran: &[Ran]) {
    let Some(folder) = std::env::var_os("KEYWAY_ROWS") else { return };
    let of_rows = sections.iter().flat_map(|section| section.rows.iter().map(move |_| section));
    let rows: Vec<Value> = of_rows
        .zip(ran)
        .map(|(section, ran)| {
            let value = ran.outcome.as_ref().unwrap_or(&Value::Null);
            json!({ "section": section.title, "given": section.given, "left": ran.left, "value": value })
        })
        .collect();
    let path = std::path::Path::new(&folder).join(format!("{page}.json"));
    std::fs::write(path, Value::from(rows).to_string()).unwrap();
}
