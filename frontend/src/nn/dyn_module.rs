//! Trait objects of modules: `&dyn Module`, `Box<dyn Module>`.

use super::module::visited;
use super::{Module, ModuleVisitor};
use crate::{Result, Tensor};
use std::fmt;

/// The type name, and dtype and shape of each parameter and buffer.
impl fmt::Debug for dyn Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.type_name());
        for (name, cell) in visited(self).tensors() {
            let tensor = cell.get();
            shown.field(name, &format_args!("{}{:?}", tensor.dtype(), tensor.shape()));
        }
        shown.finish()
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (**self).forward(input)
    }

    fn visit<'a>(&'a self, visitor: &mut ModuleVisitor<'a>) {
        (**self).visit(visitor);
    }

    fn type_name(&self) -> &'static str {
        (**self).type_name()
    }
}
