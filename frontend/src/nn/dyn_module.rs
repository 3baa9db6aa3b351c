//! Trait objects of modules: `&dyn Module`, `Box<dyn Module>`.

use super::module::members_of;
use super::{Members, Module};
use crate::{Result, Tensor};
use std::fmt;

/// The type name, and dtype and shape of each parameter and buffer.
impl fmt::Debug for dyn Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.type_name());
        for (name, slot) in members_of(self).slots() {
            let tensor = slot.get();
            shown.field(name, &format_args!("{}{:?}", tensor.dtype(), tensor.shape()));
        }
        shown.finish()
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (**self).forward(input)
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        (**self).members(members);
    }

    fn type_name(&self) -> &'static str {
        (**self).type_name()
    }
}
