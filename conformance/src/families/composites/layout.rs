//! The conversions of a composite layout under test, at shapes and values that the layout holds.

use crate::array::{Array, Indices, Number};
use crate::compare::{self, Tolerance};
use crate::families::Context;
use crate::families::layouts::{SHAPES, drawn};
use crate::families::placements::{FILLINGS, Filling};
use crate::memory::{Arrangement, Placed, read};
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::registry::{Conversion, LayoutSample, LayoutTolerance};
use keyway::dispatcher::{layouts, table};
use keyway::{DType, Device, Layout, LayoutOptions, Tensor};

/// All elements.
const ALL: Filling = |_, _| true;

/// A layout under test.
pub struct Subject<'a> {
    /// The case.
    pub context: &'a Context<'a>,
    /// The layout.
    pub layout: Layout,
    /// The device of the tensors.
    pub device: Device,
    conversion: Option<&'static Conversion>,
}

/// A tensor that the layout should hold.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its sizes.
    pub sizes: Vec<usize>,
    /// Its dtype.
    pub dtype: DType,
    options: LayoutOptions,
    tolerance: LayoutTolerance,
}

impl Shape {
    /// The same with other sizes.
    pub fn with(&self, sizes: Vec<usize>) -> Shape {
        Shape { sizes, ..self.clone() }
    }

    /// Its sizes above 1 multiplied, so that there are about this many elements.
    pub fn enlarged(&self, elements: f64) -> Vec<usize> {
        let numel: usize = self.sizes.iter().product();
        let longer = self.sizes.iter().filter(|&&size| size > 1).count().max(1);
        let factor = (elements / numel as f64).powf(1.0 / longer as f64).max(1.0) as usize;
        self.sizes.iter().map(|&size| if size > 1 { size * factor } else { size }).collect()
    }

    /// Whether the layout loses no digit of it.
    pub fn is_exact(&self) -> bool {
        self.tolerance.is_exact()
    }
}

impl<'a> Subject<'a> {
    /// The layout of a case; `None` for a case about an op.
    ///
    /// # Errors
    /// A layout that does not exist.
    pub fn of(context: &'a Context<'a>) -> Steps<Option<Subject<'a>>> {
        if context.case.is_about_op() {
            return Ok(None);
        }
        let name = &context.case.subject;
        let layout =
            Layout::from_name(name).ok_or_else(|| Stop::Skipped(format!("there is no layout `{name}`")))?;
        let conversion = table::current().layout(layout).map(|entry| &entry.conversion);
        Ok(Some(Subject { context, layout, device: context.target.device, conversion }))
    }

    fn declared(&self) -> LayoutTolerance {
        self.conversion.map(|conversion| conversion.tolerance).unwrap_or_default()
    }

    /// A shape in the usual dtype, converted without options.
    pub fn plain(&self, sizes: &[usize]) -> Shape {
        let (dtype, options) = (self.context.dtype(), LayoutOptions::default());
        Shape { sizes: sizes.to_vec(), dtype, options, tolerance: self.declared() }
    }

    /// The layout's own samples with elements; for a layout without samples, small shapes that it holds.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn shapes(&self) -> Steps<Vec<Shape>> {
        let own = self.conversion.map_or(&[][..], |conversion| &conversion.samples);
        let of_sample = |sample: &LayoutSample| Shape {
            sizes: sample.sizes.clone(),
            dtype: sample.dtype,
            options: sample.options.clone(),
            tolerance: sample.tolerance.unwrap_or(self.declared()),
        };
        let full = |shape: &Shape| shape.sizes.iter().product::<usize>() > 1;
        let own: Vec<Shape> = own.iter().map(of_sample).filter(full).collect();
        if !own.is_empty() {
            return Ok(own);
        }
        let mut found = Vec::new();
        for sizes in SHAPES {
            if self.accepts(sizes)? {
                found.push(self.plain(sizes));
            }
        }
        Ok(found)
    }

    /// Whether the layout holds tensors of this shape.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn accepts(&self, sizes: &[usize]) -> Steps<bool> {
        Ok(layouts::accepts(self.layout, self.device, sizes).map_err(keyway::Error::from)?)
    }

    /// Drawn values of the shape in each pattern of non-zero elements that the layout holds.
    ///
    /// # Errors
    /// Errors of the device; a layout that refuses each pattern.
    pub fn fillings(&self, shape: &Shape) -> Steps<Vec<Array>> {
        let (mut held, mut refusals) = (Vec::new(), Vec::new());
        for filling in [FILLINGS[0], ALL, FILLINGS[1], FILLINGS[2]] {
            if held.len() == 2 {
                break;
            }
            let mut values = drawn(shape.dtype, &shape.sizes, self.context.seed + held.len() as u64);
            let zero = Number::Int(0).cast(shape.dtype);
            let indices = Indices::new(&shape.sizes);
            let outside = values.values.iter_mut().zip(indices).filter(|(_, at)| !filling(at, &shape.sizes));
            outside.for_each(|(value, _)| *value = zero);
            match self.convert(shape, &Placed::new(&values, Arrangement::Contiguous, self.device)?.tensor) {
                Ok(_) => held.push(values),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        if held.is_empty() {
            let expected = format!("a tensor of shape {:?}, which the layout accepts", shape.sizes);
            return Err(Failure::new("the conversion to the layout", expected, refusals.join("; ")).into());
        }
        Ok(held)
    }

    /// A strided tensor in the layout, with the shape's options.
    ///
    /// # Errors
    /// Values or a shape that the layout does not hold.
    pub fn convert(&self, shape: &Shape, strided: &Tensor) -> keyway::Result<Tensor> {
        strided.to_layout_with(self.layout, &shape.options)
    }

    /// Whether the layout holds these values.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn holds(&self, shape: &Shape, values: &Array) -> Steps<bool> {
        let strided = Placed::new(values, Arrangement::Contiguous, self.device)?.tensor;
        Ok(self.convert(shape, &strided).is_ok())
    }

    /// Compares a tensor of the layout with the values that it was made from, as the layout reads it and, if the suite knows the
    /// components, as the suite does.
    ///
    /// # Errors
    /// Values outside the tolerance of the layout.
    pub fn same(&self, what: &str, shape: &Shape, values: &Array, composite: &Tensor) -> Steps {
        layouts::validate(composite.as_ref()).map_err(keyway::Error::from)?;
        let tolerance = Tolerance::of_layout(shape.tolerance, values);
        for (how, tensor) in [("converted back", composite.to_strided()?), ("read", composite.clone())] {
            let named = |mut failure: Failure| {
                failure.what = format!("{what} of shape {:?}, {how}: {}", shape.sizes, failure.what);
                failure
            };
            let got = read(&tensor)?
                .ok_or_else(|| named(Failure::new("the elements", "valid ones", "bytes that are none")))?;
            compare::array(0, values, &got, tolerance).map_err(named)?;
        }
        Ok(())
    }

    /// Converts values to the layout and compares the result.
    ///
    /// # Errors
    /// A refusal; values outside the tolerance of the layout.
    pub fn round_trip(&self, what: &str, shape: &Shape, values: &Array) -> Steps {
        let strided = Placed::new(values, Arrangement::Contiguous, self.device)?.tensor;
        self.same(what, shape, values, &self.convert(shape, &strided)?)
    }
}
