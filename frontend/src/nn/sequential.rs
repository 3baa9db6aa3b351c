//! A chain of modules.

use super::{Func, Module, ModuleVisitor};
use crate::profiler::module_scope;
use crate::{Result, Tensor};
use std::fmt;
use std::ops::Index;

/// Modules that are applied in order, each to the result of the previous one.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Linear, Module, Relu, Sequential}};
/// let model = Sequential::new().push(Linear::new(3, 4)?).push(Relu).push_named("head", Linear::new(4, 2)?);
/// assert!(model.state_dict().keys().eq(["0.bias", "0.weight", "head.bias", "head.weight"]));
/// let model = Sequential::new().push(Linear::without_bias(3, 4)?).push(Relu);
/// assert_eq!(format!("{model:?}"), "Sequential { 0: Linear { weight: f32[4, 3] }, 1: Relu }");
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Sequential {
    modules: Vec<(String, Box<dyn Module>)>,
}

impl Sequential {
    /// An empty chain: the identity.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Sequential}};
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(Sequential::new().forward(&x)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a module, named by its index.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module, Relu, Sequential};
    /// let model = Sequential::new().push(Relu).push(Linear::without_bias(3, 2)?);
    /// assert_eq!(model.named_parameters()[0].0, "1.weight");
    /// # Ok(()) }
    /// ```
    pub fn push(self, module: impl Module + 'static) -> Sequential {
        let name = self.modules.len().to_string();
        self.push_named(&name, module)
    }

    /// Appends a module with this name.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module, Sequential};
    /// let model = Sequential::new().push_named("head", Linear::without_bias(3, 2)?);
    /// assert_eq!(model.named_parameters()[0].0, "head.weight");
    /// # Ok(()) }
    /// ```
    pub fn push_named(mut self, name: &str, module: impl Module + 'static) -> Sequential {
        self.modules.push((name.to_string(), Box::new(module)));
        self
    }

    /// [`Sequential::push`] under the name that candle uses (PyTorch: `append`).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Relu, Sequential};
    /// let model = Sequential::new().add(Linear::new(3, 4)?).add(Relu).add(Linear::new(4, 2)?);
    /// assert_eq!(model.len(), 3);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, module: impl Module + 'static) -> Sequential {
        self.push(module)
    }

    /// Appends a function as a module; see [`Func`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Sequential}};
    /// let model = Sequential::new().add_fn(|x| x.mul(2)).add_fn(Tensor::relu);
    /// assert_eq!(model.forward(&Tensor::new([-1.0f32, 3.0])?)?.to_vec::<f32>()?, [0.0, 6.0]);
    /// # Ok(()) }
    /// ```
    pub fn add_fn(self, function: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Sequential {
        self.push(Func::new(function))
    }

    /// The number of modules.
    ///
    /// ```
    /// use keyway::nn::{Relu, Sequential};
    /// assert_eq!(Sequential::new().push(Relu).push(Relu).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether the chain is empty.
    ///
    /// ```
    /// use keyway::nn::{Relu, Sequential};
    /// assert!(Sequential::new().is_empty());
    /// assert!(!Sequential::new().push(Relu).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// The module at `index`.
    ///
    /// ```
    /// use keyway::nn::{Relu, Sequential};
    /// let model = Sequential::new().push(Relu);
    /// assert_eq!(model.get(0).unwrap().type_name(), "Relu");
    /// assert!(model.get(1).is_none());
    /// ```
    pub fn get(&self, index: usize) -> Option<&dyn Module> {
        self.modules.get(index).map(|(_, module)| module.as_ref())
    }

    /// Iterates over names and modules in order.
    ///
    /// ```
    /// use keyway::nn::{Flatten, Relu, Sequential};
    /// let model = Sequential::new().push(Relu).push_named("last", Flatten::default());
    /// let names: Vec<&str> = model.iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["0", "last"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&str, &dyn Module)> {
        self.modules.iter().map(|(name, module)| (name.as_str(), module.as_ref()))
    }
}

/// An empty chain, under candle's name.
#[doc(hidden)]
#[deprecated(note = "write `Sequential::new()`")]
pub fn seq() -> Sequential {
    Sequential::new()
}

/// Collects modules in order, named by their indices.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, Sequential};
/// let model = (0..3).map(|_| Linear::new(4, 4)).collect::<keyway::Result<Sequential>>()?;
/// assert_eq!(model.len(), 3);
/// # Ok(()) }
/// ```
impl<M: Module + 'static> FromIterator<M> for Sequential {
    fn from_iter<I: IntoIterator<Item = M>>(modules: I) -> Sequential {
        modules.into_iter().fold(Sequential::new(), Sequential::push)
    }
}

/// The modules of a vector in order: all of one type, or boxed as `Box<dyn Module>`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, Module, Relu, Sequential};
/// let layers: Vec<Box<dyn Module>> = vec![Box::new(Linear::new(3, 4)?), Box::new(Relu)];
/// assert_eq!(Sequential::from(layers).len(), 2);
/// # Ok(()) }
/// ```
impl<M: Module + 'static> From<Vec<M>> for Sequential {
    fn from(modules: Vec<M>) -> Sequential {
        modules.into_iter().collect()
    }
}

/// The modules of an array in order.
impl<M: Module + 'static, const N: usize> From<[M; N]> for Sequential {
    fn from(modules: [M; N]) -> Sequential {
        modules.into_iter().collect()
    }
}

/// The modules of a tuple in order: `Sequential::from((Linear::new(3, 4)?, Relu))`.
macro_rules! from_tuples {
    ($(($($module:ident)+)),+ $(,)?) => {$(
        /// The modules of a tuple in order.
        impl<$($module: Module + 'static),+> From<($($module,)+)> for Sequential {
            #[allow(non_snake_case)]
            fn from(($($module,)+): ($($module,)+)) -> Sequential {
                Sequential::new()$(.push($module))+
            }
        }
    )+};
}
from_tuples! {
    (A B), (A B C), (A B C D), (A B C D E), (A B C D E F), (A B C D E F G), (A B C D E F G H),
    (A B C D E F G H I), (A B C D E F G H I J), (A B C D E F G H I J K), (A B C D E F G H I J K L),
}

/// The module at an index. Panics if the index is out of range, as a slice does; [`Sequential::get`] does not.
impl Index<usize> for Sequential {
    type Output = dyn Module;

    fn index(&self, index: usize) -> &Self::Output {
        self.modules[index].1.as_ref()
    }
}

/// Prints the modules with their names and parameters.
impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sequential");
        for (name, module) in &self.modules {
            shown.field(name, module);
        }
        shown.finish()
    }
}

impl Module for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.modules.iter().try_fold(input.clone(), |value, (name, module)| {
            let _scope = module_scope(name, module.type_name());
            module.forward(&value)
        })
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (name, module) in &self.modules {
            visitor.child(name, module);
        }
    }
}
