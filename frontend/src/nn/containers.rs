//! Containers of modules, by index or by name.

use super::{Module, ModuleError, ModuleVisitor};
use crate::{Result, Tensor};
use std::ops::Index;

/// A list of modules, named by their indices, for a module whose forward function calls them in its own way.
/// [`Sequential`](super::Sequential) is the list whose forward function chains them.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, ModuleVisitor, Module, ModuleList};
/// use keyway::{Result, Tensor};
///
/// /// Sums the results of all layers.
/// struct Sum {
///     layers: ModuleList<Linear>,
/// }
///
/// impl Module for Sum {
///     fn forward(&self, input: &Tensor) -> Result<Tensor> {
///         self.layers.iter().try_fold(input.zeros_like()?, |sum, layer| sum.add(&layer.forward(input)?))
///     }
///     fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
///         visitor.child("layers", &self.layers);
///     }
/// }
///
/// let layers = (0..2).map(|_| Linear::new(3, 3)).collect::<Result<_>>()?;
/// let model = Sum { layers };
/// assert!(model.state_dict().keys().eq(["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ModuleList<M = Box<dyn Module>> {
    modules: Vec<M>,
}

impl<M> ModuleList<M> {
    /// An empty list.
    ///
    /// ```
    /// use keyway::nn::{ModuleList, Relu};
    /// assert!(ModuleList::<Relu>::new().is_empty());
    /// ```
    pub fn new() -> ModuleList<M> {
        ModuleList { modules: Vec::new() }
    }

    /// Appends a module.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module, ModuleList};
    /// let mut layers = ModuleList::new();
    /// layers.push(Linear::new(3, 4)?);
    /// assert!(layers.state_dict().contains_key("0.weight"));
    /// # Ok(()) }
    /// ```
    pub fn push(&mut self, module: M) {
        self.modules.push(module);
    }

    /// Iterates over the modules in order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{ModuleList, Prelu};
    /// let layers: ModuleList<Prelu> = (1..4).map(|n| Prelu::new_with(n, 0.25)).collect::<keyway::Result<_>>()?;
    /// assert_eq!(layers.iter().count(), 3);
    /// # Ok(()) }
    /// ```
    pub fn iter(&self) -> std::slice::Iter<'_, M> {
        self.modules.iter()
    }

    /// The number of modules.
    ///
    /// ```
    /// use keyway::nn::{ModuleList, Relu};
    /// let layers: ModuleList<Relu> = [Relu, Relu].into_iter().collect();
    /// assert_eq!(layers.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether the list is empty.
    ///
    /// ```
    /// use keyway::nn::{ModuleList, Relu};
    /// let layers: ModuleList<Relu> = [Relu].into_iter().collect();
    /// assert!(!layers.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// The module at `index`.
    ///
    /// ```
    /// use keyway::nn::{ModuleList, Relu};
    /// let layers: ModuleList<Relu> = [Relu].into_iter().collect();
    /// assert!(layers.get(0).is_some() && layers.get(1).is_none());
    /// ```
    pub fn get(&self, index: usize) -> Option<&M> {
        self.modules.get(index)
    }
}

impl<M> Default for ModuleList<M> {
    fn default() -> ModuleList<M> {
        ModuleList::new()
    }
}

impl<M> FromIterator<M> for ModuleList<M> {
    fn from_iter<I: IntoIterator<Item = M>>(modules: I) -> ModuleList<M> {
        ModuleList { modules: modules.into_iter().collect() }
    }
}

impl<'a, M> IntoIterator for &'a ModuleList<M> {
    type Item = &'a M;
    type IntoIter = std::slice::Iter<'a, M>;

    fn into_iter(self) -> std::slice::Iter<'a, M> {
        self.iter()
    }
}

/// The module at an index. Panics if the index is out of range, as a slice does; [`ModuleList::get`] does not.
impl<M> Index<usize> for ModuleList<M> {
    type Output = M;

    fn index(&self, index: usize) -> &M {
        &self.modules[index]
    }
}

impl<M: Module> Module for ModuleList<M> {
    /// Not implemented: a list has no forward function.
    ///
    /// # Errors
    /// Always `NoForward`.
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(ModuleError::NoForward { owner: "ModuleList" }.into())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (index, module) in self.modules.iter().enumerate() {
            visitor.child(&index.to_string(), module);
        }
    }
}

/// A map of modules by name, in insertion order.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::nn::{Linear, Module, ModuleDict, Relu};
/// use keyway::Tensor;
/// let mut heads: ModuleDict = ModuleDict::new();
/// heads.insert("digit", Box::new(Linear::new(3, 10)?));
/// heads.insert("positive", Box::new(Relu));
/// let x = Tensor::from_vec(vec![-1.0f32, 0.0, 1.0], (1, 3))?;
/// assert_eq!(heads.get("positive").unwrap().forward(&x)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
/// assert!(heads.state_dict().keys().eq(["digit.bias", "digit.weight"]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ModuleDict<M = Box<dyn Module>> {
    modules: Vec<(String, M)>,
}

impl<M> ModuleDict<M> {
    /// An empty map.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// assert!(ModuleDict::<Relu>::new().is_empty());
    /// ```
    pub fn new() -> ModuleDict<M> {
        ModuleDict { modules: Vec::new() }
    }

    /// Inserts a module. A module of the same name is replaced at its position and returned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::nn::{Linear, Module, ModuleDict};
    /// let mut heads = ModuleDict::new();
    /// assert!(heads.insert("digit", Linear::new(3, 10)?).is_none());
    /// assert!(heads.insert("digit", Linear::new(3, 5)?).is_some());
    /// assert_eq!(heads.state_dict()["digit.weight"].shape(), [5, 3]);
    /// # Ok(()) }
    /// ```
    pub fn insert(&mut self, name: &str, module: M) -> Option<M> {
        match self.modules.iter_mut().find(|(other, _)| other == name) {
            Some((_, there)) => Some(std::mem::replace(there, module)),
            None => {
                self.modules.push((name.to_string(), module));
                None
            }
        }
    }

    /// Removes a module and returns it.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// let mut heads = ModuleDict::new();
    /// heads.insert("positive", Relu);
    /// assert!(heads.remove("positive").is_some());
    /// assert!(heads.is_empty());
    /// ```
    pub fn remove(&mut self, name: &str) -> Option<M> {
        let at = self.modules.iter().position(|(other, _)| other == name)?;
        Some(self.modules.remove(at).1)
    }

    /// The module of this name.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// let mut heads = ModuleDict::new();
    /// heads.insert("positive", Relu);
    /// assert!(heads.get("positive").is_some() && heads.get("digit").is_none());
    /// ```
    pub fn get(&self, name: &str) -> Option<&M> {
        self.modules.iter().find(|(other, _)| other == name).map(|(_, module)| module)
    }

    /// Iterates over names and modules in order.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// let mut heads = ModuleDict::new();
    /// heads.insert("b", Relu);
    /// heads.insert("a", Relu);
    /// let names: Vec<&str> = heads.iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["b", "a"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&str, &M)> {
        self.modules.iter().map(|(name, module)| (name.as_str(), module))
    }

    /// The number of modules.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// let mut heads = ModuleDict::new();
    /// heads.insert("positive", Relu);
    /// assert_eq!(heads.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether the map is empty.
    ///
    /// ```
    /// use keyway::nn::{ModuleDict, Relu};
    /// let mut heads = ModuleDict::new();
    /// assert!(heads.is_empty());
    /// heads.insert("positive", Relu);
    /// assert!(!heads.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }
}

impl<M> Default for ModuleDict<M> {
    fn default() -> ModuleDict<M> {
        ModuleDict::new()
    }
}

impl<M: Module> Module for ModuleDict<M> {
    /// Not implemented: a map has no forward function.
    ///
    /// # Errors
    /// Always `NoForward`.
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(ModuleError::NoForward { owner: "ModuleDict" }.into())
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        for (name, module) in &self.modules {
            visitor.child(name, module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{Dropout, Prelu};

    #[test]
    fn a_list_has_no_forward_function_and_shows_its_modules() {
        let list: ModuleList<Prelu> = (0..2).map(|_| Prelu::new().unwrap()).collect();
        assert_eq!((list.len(), list.iter().count(), list.get(2).is_none()), (2, 2, true));
        let text = list.forward(&Tensor::new(1.0f32).unwrap()).unwrap_err().to_string();
        assert!(text.contains("ModuleList") && text.contains("Sequential"), "{text}");
        assert!(list.state_dict().keys().eq(["0.weight", "1.weight"]));
        assert_eq!(list[1].num_parameters(), 1);
    }

    #[test]
    fn modes_reach_modules_by_name() {
        let mut named = ModuleDict::new();
        assert!(named.insert("b", Dropout::new(1.0).unwrap()).is_none());
        assert!(named.insert("a", Dropout::new(1.0).unwrap()).is_none());
        assert!(named.insert("b", Dropout::new(0.5).unwrap()).is_some(), "the one before");
        assert!(named.iter().map(|(name, _)| name).eq(["b", "a"]));
        let x = Tensor::new([1.0f32]).unwrap();
        let a = |named: &ModuleDict<Dropout>| {
            named.get("a").unwrap().forward(&x).unwrap().to_vec::<f32>().unwrap()
        };
        assert_eq!(a(&named), [0.0]);
        named.eval();
        assert_eq!(a(&named), [1.0]);
        assert!(named.remove("b").is_some() && named.remove("b").is_none() && named.len() == 1);
    }
}
