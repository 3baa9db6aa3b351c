"""Discrete Fourier transforms with the names and arguments of ``torch.fft``; they need the library ``keyway-fft``.

``n`` or ``s`` gives the lengths of the signal, which is cut or padded with zeros to them. ``norm`` is ``"backward"`` (the inverse is
divided by the length), ``"ortho"`` (both by its square root) or ``"forward"``.
"""

from ._keyway import fourier as _fourier

fft, ifft, rfft, irfft, hfft, ihfft = (
    _fourier.fft, _fourier.ifft, _fourier.rfft, _fourier.irfft, _fourier.hfft, _fourier.ihfft
)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (
    _fourier.fft2, _fourier.ifft2, _fourier.rfft2, _fourier.irfft2, _fourier.hfft2, _fourier.ihfft2
)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (
    _fourier.fftn, _fourier.ifftn, _fourier.rfftn, _fourier.irfftn, _fourier.hfftn, _fourier.ihfftn
)
fftfreq, rfftfreq, fftshift, ifftshift = (
    _fourier.fftfreq, _fourier.rfftfreq, _fourier.fftshift, _fourier.ifftshift
)
