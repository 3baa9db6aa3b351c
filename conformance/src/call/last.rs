//! The last call of a thread as text, for the report of a failed case, which may make many calls.

use crate::oracle::Value;
use keyway::{DType, Tensor};
use std::cell::RefCell;
use std::sync::Arc;

/// A tensor argument of a call.
struct Given {
    dtype: DType,
    sizes: Vec<usize>,
    /// The strides in elements, or the layout's name if it is not strided.
    strides: Result<Vec<usize>, &'static str>,
}

struct Last {
    op: &'static str,
    values: Arc<Vec<Value>>,
    tensors: Vec<Given>,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    static DESCRIBED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes a call.
pub(super) fn note(op: &'static str, values: &Arc<Vec<Value>>, tensors: &[Tensor]) {
    let given = |t: &Tensor| {
        let strides = match t.as_ref().is_strided() {
            true => Ok(t.strides().to_vec()),
            false => Err(t.layout().name()),
        };
        Given { dtype: t.dtype(), sizes: t.shape().to_vec(), strides }
    };
    let tensors = tensors.iter().map(given).collect();
    DESCRIBED.set(None);
    LAST.set(Some(Last { op, values: values.clone(), tensors }));
}

/// Replaces the text of the last call by a more detailed one.
pub fn describe(words: String) {
    DESCRIBED.set(Some(words));
}

/// Forgets the last call.
pub fn forget() {
    DESCRIBED.set(None);
    LAST.set(None);
}

/// The last call as text: `add(f32 [3, 4] strides [1, 3], f32 [4] strides [1], 1)`.
pub fn words() -> Option<String> {
    let described = DESCRIBED.with_borrow(Clone::clone);
    described.or_else(|| LAST.with_borrow(|last| last.as_ref().map(Last::words)))
}

/// The dtypes of the last call's tensors.
pub fn dtypes() -> Vec<DType> {
    LAST.with_borrow(|last| last.iter().flat_map(|last| &last.tensors).map(|given| given.dtype).collect())
}

impl Given {
    fn words(&self) -> String {
        match &self.strides {
            Ok(strides) => format!("{} {:?} strides {strides:?}", self.dtype, self.sizes),
            Err(layout) => format!("{} {:?} in {layout}", self.dtype, self.sizes),
        }
    }
}

impl Last {
    fn words(&self) -> String {
        let mut tensors = self.tensors.iter().map(Given::words);
        let mut next = || tensors.next().unwrap_or_default();
        let texts: Vec<String> = self
            .values
            .iter()
            .map(|value| match value {
                Value::None => "none".to_string(),
                Value::Array(_) => next(),
                Value::Arrays(list) => {
                    format!("[{}]", list.iter().map(|_| next()).collect::<Vec<_>>().join(", "))
                }
                Value::Int(v) => v.to_string(),
                Value::Float(v) => format!("{v:?}"),
                Value::Bool(v) => v.to_string(),
                Value::Ints(v) => format!("{v:?}"),
                Value::Floats(v) => format!("{v:?}"),
                Value::Str(v) => format!("\"{v}\""),
                Value::DType(v) => v.to_string(),
            })
            .collect();
        format!("{}({})", self.op, texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Number};
    use crate::call::Prepared;
    use crate::memory::Arrangement;
    use crate::oracle::Inputs;
    use keyway::Device;

    #[test]
    fn the_last_call_is_described_with_its_strides() {
        let array = Array::from_fn(DType::F32, [2, 3], |_| Number::Float(1.0));
        let inputs = Inputs(vec![Value::Array(array), Value::Int(1), Value::None]);
        let prepared = Prepared::new(&inputs, Device::CPU, |_| Arrangement::Transposed).expect("memory");
        forget();
        assert_eq!(words(), None);
        note("some", &prepared.values, &prepared.tensors());
        assert_eq!(words().as_deref(), Some("some(f32 [2, 3] strides [1, 2], 1, none)"));
        describe("other words".to_string());
        assert_eq!(words().as_deref(), Some("other words"));
        note("some", &prepared.values, &prepared.tensors());
        assert_ne!(words().as_deref(), Some("other words"));
    }
}
