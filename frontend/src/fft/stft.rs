//! Short-time Fourier transforms, composed of ops.

use super::options::{complex, inexact, wrong};
use crate::error::{Result, called_as};
use crate::ops::composite::counting;
use crate::ops::index::pad::PadMode;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

/// The parameters in errors.
const PARAMETERS: &[&str] = &["x", "n_fft", "hop_length", "win_length", "window", "onesided", "length"];
/// The ops' names of arguments that these functions name otherwise.
const NAMES: &[(&str, &str)] = &[("self", "x")];
/// The smallest sum of squared windows that a signal is divided by.
const LOWEST: f64 = 1e-11;

/// The options of [`stft`].
///
/// ```
/// use keyway::fft::StftOptions;
/// let options = StftOptions { hop_length: Some(160), ..StftOptions::new(400) };
/// assert!(options.center && options.win_length.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StftOptions<'a> {
    /// Elements of a frame, and the length of its transform.
    pub n_fft: usize,
    /// Elements between the starts of two frames; a quarter of `n_fft` if `None`.
    pub hop_length: Option<usize>,
    /// The length of the window, which is centred in a frame between zeros; `n_fft` if `None`.
    pub win_length: Option<usize>,
    /// The window of `win_length` elements; ones if `None`.
    pub window: Option<&'a Tensor>,
    /// Whether frame `t` is centred at element `t * hop_length`: the signal is padded by `n_fft / 2` on both sides. Otherwise it
    /// begins there.
    pub center: bool,
    /// The padding of `center`.
    pub pad_mode: PadMode,
    /// Whether each transform is divided by the square root of `n_fft`.
    pub normalized: bool,
    /// Whether only the first `n_fft / 2 + 1` frequencies are computed; if `None`, unless signal or window is complex.
    pub onesided: Option<bool>,
}

impl StftOptions<'_> {
    /// The options with this length of the frames, and PyTorch's defaults of the others.
    ///
    /// ```
    /// use keyway::fft::StftOptions;
    /// assert_eq!(StftOptions::new(400).n_fft, 400);
    /// ```
    pub fn new(n_fft: usize) -> Self {
        StftOptions {
            n_fft,
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            pad_mode: PadMode::Reflect,
            normalized: false,
            onesided: None,
        }
    }
}

/// The options of [`istft`], with the meaning of those of [`stft`].
///
/// ```
/// use keyway::fft::IstftOptions;
/// let options = IstftOptions { length: Some(16_000), ..IstftOptions::new(400) };
/// assert!(!options.return_complex);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IstftOptions<'a> {
    /// Elements of a frame.
    pub n_fft: usize,
    /// Elements between the starts of two frames; a quarter of `n_fft` if `None`.
    pub hop_length: Option<usize>,
    /// The length of the window; `n_fft` if `None`.
    pub win_length: Option<usize>,
    /// The window of `win_length` elements; ones if `None`.
    pub window: Option<&'a Tensor>,
    /// Whether the signal was padded.
    pub center: bool,
    /// Whether each transform was divided by the square root of `n_fft`.
    pub normalized: bool,
    /// Whether the spectrogram has `n_fft / 2 + 1` frequencies; by its size if `None`.
    pub onesided: Option<bool>,
    /// The length of the signal, which is cropped or padded with zeros; all that the frames cover if `None`.
    pub length: Option<usize>,
    /// Whether the signal is complex, for a spectrogram of all frequencies.
    pub return_complex: bool,
}

impl IstftOptions<'_> {
    /// The options with this length of the frames, and PyTorch's defaults of the others.
    ///
    /// ```
    /// use keyway::fft::IstftOptions;
    /// assert_eq!(IstftOptions::new(400).length, None);
    /// ```
    pub fn new(n_fft: usize) -> Self {
        IstftOptions {
            n_fft,
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            normalized: false,
            onesided: None,
            length: None,
            return_complex: false,
        }
    }
}

/// The lengths of frames and windows.
struct Frames {
    n_fft: usize,
    hop: usize,
    win: usize,
}

impl Frames {
    fn of(op: &'static str, n_fft: usize, hop: Option<usize>, win: Option<usize>) -> Result<Frames> {
        let hop = hop.unwrap_or(n_fft / 4);
        let win = win.unwrap_or(n_fft);
        let check = |argument, value: usize, allowed: bool, expected: &str| match allowed {
            true => Ok(()),
            false => Err(wrong(op, argument, expected.to_string(), value.to_string())),
        };
        check("n_fft", n_fft, n_fft > 0, "1 or more")?;
        check("hop_length", hop, hop > 0, "1 or more")?;
        check("win_length", win, (1..=n_fft).contains(&win), "1 to `n_fft`")?;
        Ok(Frames { n_fft, hop, win })
    }

    /// The window between zeros, `[n_fft]`; `None` if it is all ones.
    fn window(&self, op: &'static str, given: Option<&Tensor>, like: &Tensor) -> Result<Option<Tensor>> {
        if let Some(window) = given
            && window.shape() != [self.win]
        {
            let expected = format!("[{}], the length of the window", self.win);
            return Err(Error::Shape { op, argument: "window", expected, got: window.shape().into() }.into());
        }
        let window = match given {
            Some(window) => inexact(window)?,
            None if self.win == self.n_fft => return Ok(None),
            None => Tensor::ones_with(self.win, (like.dtype().to_real(), like.device()))?,
        };
        let spare = self.n_fft - self.win;
        if spare == 0 {
            return Ok(Some(window));
        }
        let before = spare / 2;
        window.constant_pad(&[before as i64, (spare - before) as i64], 0).map(Some)
    }
}

/// The short-time Fourier transform of a signal `[length]`, or of a batch `[batch, length]`: the complex spectra of overlapping frames,
/// `[.., frequency, frame]`.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, StftOptions}};
/// let window = fft::hann_window(400)?;
/// let options = StftOptions { hop_length: Some(160), window: Some(&window), ..StftOptions::new(400) };
/// let spectrogram = fft::stft(&Tensor::ones((2, 16_000))?, options)?;
/// assert_eq!(spectrogram.shape(), [2, 201, 101]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Other shapes; a signal shorter than a frame, or too short for its padding; lengths of 0; a window longer than a frame, or of another
/// length than `win_length`; `onesided` of complex numbers.
pub fn stft(x: &Tensor, options: StftOptions<'_>) -> Result<Tensor> {
    let op = "stft";
    called_as(op, PARAMETERS, NAMES, || {
        let frames = Frames::of(op, options.n_fft, options.hop_length, options.win_length)?;
        let x = inexact(x)?;
        if !(1..=2).contains(&x.rank()) {
            let expected = "[length] or [batch, length]".to_string();
            return Err(Error::Shape { op, argument: "x", expected, got: x.shape().into() }.into());
        }
        let window = frames.window(op, options.window, &x)?;
        let is_complex = x.is_complex() || window.as_ref().is_some_and(Tensor::is_complex);
        let onesided = options.onesided.unwrap_or(!is_complex);
        if onesided && is_complex {
            let expected = "false for a complex signal or window, whose spectrum has no symmetry".to_string();
            return Err(wrong(op, "onesided", expected, "true".to_string()));
        }
        let margin = (frames.n_fft / 2) as i64;
        let x = if options.center { x.pad_with((margin, margin), options.pad_mode, 0)? } else { x };
        let length = x.dim(-1)?;
        if length < frames.n_fft {
            let expected =
                format!("at least `n_fft`, {}, elements of a signal and its padding", frames.n_fft);
            return Err(wrong(op, "x", expected, length.to_string()));
        }
        let mut framed = x.unfold(-1, frames.n_fft, frames.hop)?;
        if let Some(window) = window {
            framed = framed.mul(&window)?;
        }
        let norm = if options.normalized { "ortho" } else { "backward" };
        let spectra = match is_complex {
            true => complex(&framed)?.fft_c2c(&[-1], norm, true)?,
            false => framed.fft_r2c(&[-1], norm, onesided)?,
        };
        spectra.transpose(-2, -1)
    })
}

/// Adds overlapping frames, `[.., frame, n_fft]`, at intervals of `hop`.
fn overlap_add(frames: &Tensor, hop: usize) -> Result<Tensor> {
    let &[ref lead @ .., count, n_fft] = frames.shape() else { return Ok(frames.clone()) };
    let device = frames.device();
    let starts = counting(&[count, 1], device)?.mul(hop as i64)?;
    let index = starts.add(&counting(&[n_fft], device)?)?.reshape(count * n_fft)?;
    let length = n_fft + hop * (count - 1);
    let zeros = Tensor::zeros_with([lead, &[length]].concat(), (frames.dtype(), device))?;
    zeros.index_add(-1, &index, &frames.reshape([lead, &[count * n_fft]].concat())?)
}

/// The signal of a spectrogram, `[frequency, frame]` or `[batch, frequency, frame]`: the inverse of [`stft`] by least squares (D.
/// Griffin and J. Lim, "Signal estimation from modified short-time Fourier transform", 1984). The windowed frames are added and divided
/// by the sum of the squared windows.
///
/// ```no_run
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, fft::{self, IstftOptions, StftOptions}};
/// let window = fft::hann_window(64)?;
/// let spectrogram = fft::stft(&Tensor::ones(1000)?, StftOptions { window: Some(&window), ..StftOptions::new(64) })?;
/// let options = IstftOptions { window: Some(&window), length: Some(1000), ..IstftOptions::new(64) };
/// assert_eq!(fft::istft(&spectrogram, options)?.shape(), [1000]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// A real dtype; other shapes; no frames; another number of frequencies than `n_fft` has; lengths of 0; a `hop_length` above the length
/// of the window; a window longer than a frame, or of another length than `win_length`; windows whose squares add to less than 1e-11
/// somewhere; `return_complex` of half a spectrum.
pub fn istft(x: &Tensor, options: IstftOptions<'_>) -> Result<Tensor> {
    let op = "istft";
    called_as(op, PARAMETERS, NAMES, || {
        let frames = Frames::of(op, options.n_fft, options.hop_length, options.win_length)?;
        if frames.hop > frames.win {
            let expected = format!("at most the length of the window, {}", frames.win);
            return Err(wrong(op, "hop_length", expected, frames.hop.to_string()));
        }
        let Some((rows, count)) = matrix(x) else {
            let expected =
                "[frequency, frame] or [batch, frequency, frame], with one frame or more".to_string();
            return Err(Error::Shape { op, argument: "x", expected, got: x.shape().into() }.into());
        };
        if !x.is_complex() || x.rank() > 3 {
            return Err(bad_spectrogram(op, x));
        }
        let n_fft = frames.n_fft;
        let half = n_fft / 2 + 1;
        let onesided = options.onesided.unwrap_or(rows != n_fft);
        let wanted = if onesided { half } else { n_fft };
        if rows != wanted {
            let expected = format!("{wanted} frequencies for `n_fft` {n_fft}");
            return Err(wrong(op, "x", expected, rows.to_string()));
        }
        if onesided && options.return_complex {
            let expected = "false for a complex signal".to_string();
            return Err(wrong(op, "onesided", expected, "half a spectrum".to_string()));
        }
        let window = frames.window(op, options.window, x)?;
        if !options.return_complex && window.as_ref().is_some_and(Tensor::is_complex) {
            let expected = "a real window for a real signal".to_string();
            return Err(wrong(op, "window", expected, "complex numbers".to_string()));
        }
        let norm = if options.normalized { "ortho" } else { "backward" };
        let spectra = x.transpose(-2, -1)?;
        let framed = match options.return_complex {
            true => spectra.fft_c2c(&[-1], norm, false)?,
            false => spectra.narrow(-1, 0, half)?.fft_c2r(&[-1], norm, n_fft)?,
        };
        let ones = || Tensor::ones_with(n_fft, (framed.dtype().to_real(), framed.device()));
        let (framed, squares) = match window {
            Some(window) => (framed.mul(&window)?, window.square()?),
            None => (framed.clone(), ones()?),
        };
        let sum = overlap_add(&framed, frames.hop)?;
        let weights = overlap_add(&squares.expand((count, n_fft))?, frames.hop)?;
        let covered = sum.dim(-1)?;
        let start = if options.center { (n_fft / 2).min(covered) } else { 0 };
        let end = match options.length {
            Some(length) => start.saturating_add(length),
            None if options.center => covered.saturating_sub(n_fft / 2).max(start),
            None => covered,
        };
        let kept = end.min(covered) - start;
        let (sum, weights) = (sum.narrow(-1, start, kept)?, weights.narrow(-1, start, kept)?);
        if kept > 0 {
            let lowest = weights.detach().abs()?.min_all()?.to_dtype(DType::F64)?.item::<f64>()?;
            if lowest < LOWEST {
                let expected = "windows whose squares add to at least 1e-11 at every element".to_string();
                return Err(wrong(op, "window", expected, lowest.to_string()));
            }
        }
        let y = sum.div(&weights)?;
        match end - start - kept {
            0 => Ok(y),
            missing => y.constant_pad(&[0, i64::try_from(missing).unwrap_or(i64::MAX)], 0),
        }
    })
}

/// The last two sizes, if the last one is not 0.
fn matrix(x: &Tensor) -> Option<(usize, usize)> {
    match *x.shape() {
        [.., rows, count] if count > 0 => Some((rows, count)),
        _ => None,
    }
}

fn bad_spectrogram(op: &'static str, x: &Tensor) -> crate::Error {
    let error = match x.is_complex() {
        true => {
            let expected = "[frequency, frame] or [batch, frequency, frame]".to_string();
            Error::Shape { op, argument: "x", expected, got: x.shape().into() }
        }
        false => {
            let expected = "c64 or c128; `view_as_complex` reads pairs of parts".to_string();
            Error::DType { op, argument: "x", expected, got: x.dtype() }
        }
    };
    error.into()
}
