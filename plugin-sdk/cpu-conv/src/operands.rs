//! The tensors of a call.

use crate::epilogue::Epilogue;
use crate::image::Pixel;
use keyway_cpu_loops::images::{Moves, Volume};
use keyway_sdk::author::{Call, Element, Error, Lanes};

/// The tensors and parameters of a call of `conv`, `conv_act`, `conv_input_grad` or `conv_weight_grad`.
///
/// The arguments are read once, for kernels that fall back to others.
pub struct Operands<'a, T> {
    /// The first two arguments.
    pub inputs: [Volume<'a, T>; 2],
    /// The bias, one element per output channel, and its stride.
    pub bias: Option<(Lanes<'a, T>, usize)>,
    /// The result.
    pub out: Volume<'a, T>,
    /// Stride, padding, dilation and groups.
    pub moves: Moves,
    /// The epilogue.
    pub epilogue: Epilogue<'a, T>,
}

impl<'a, T: Pixel> Operands<'a, T> {
    /// Reads the operands of a call of `conv_act`, whose last arguments define the epilogue.
    ///
    /// # Errors
    /// If an argument has another type; as `Epilogue::of`.
    pub fn with_activation(call: &Call<'a>) -> Result<Self, Error> {
        let operands = Operands::with_bias(call)?;
        Ok(Operands { epilogue: Epilogue::of(call, &operands.out)?, ..operands })
    }
}

impl<'a, T: Element> Operands<'a, T> {
    /// Reads the operands of a gradient's call.
    ///
    /// # Errors
    /// If an argument has another type.
    pub fn of(call: &Call<'a>) -> Result<Self, Error> {
        Ok(Operands {
            inputs: [Volume::argument(call, 0)?, Volume::argument(call, 1)?],
            bias: None,
            out: Volume::output(call, 0)?,
            moves: Moves::of(call)?,
            epilogue: Epilogue::NONE,
        })
    }

    /// Reads the operands of a call of `conv`, whose third argument is the bias.
    ///
    /// # Errors
    /// If an argument has another type.
    pub fn with_bias(call: &Call<'a>) -> Result<Self, Error> {
        let bias = match call.is_none(2)? {
            true => None,
            false => {
                let view = call.view::<T>(2)?;
                let step = view.strides().first().map_or(0, |&s| s.max(0) as usize);
                // SAFETY: the host guarantees the elements, which are only read.
                Some((unsafe { Lanes::new(view.as_ptr().cast_mut()) }, step))
            }
        };
        Ok(Operands { bias, ..Operands::of(call)? })
    }
}
