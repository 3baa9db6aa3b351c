"""The namespaces ``fft`` and ``linalg`` beside NumPy."""

import numpy as np
import pytest

import keyway as kw

rng = np.random.default_rng(0)
REAL = rng.standard_normal((4, 6))
COMPLEX = REAL + 1j * rng.standard_normal((4, 6))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 4, 9])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_a_dimension(name, n, norm):
    signal = REAL if name in ("rfft", "ihfft") else COMPLEX
    for axis in (0, -1):
        expected = getattr(np.fft, name)(signal, n, axis, norm)
        got = getattr(kw.fft, name)(kw.tensor(signal), n, axis, norm)
        np.testing.assert_allclose(np.asarray(got), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_several_dimensions(name):
    signal = REAL if name.startswith("rfft") else COMPLEX
    for s in (None, (3, 8)):
        expected = getattr(np.fft, name)(signal, s, (0, 1))
        np.testing.assert_allclose(np.asarray(getattr(kw.fft, name)(kw.tensor(signal), s, (0, 1))), expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    np.testing.assert_allclose(np.asarray(kw.fft.fftfreq(n, 0.5)), np.fft.fftfreq(n, 0.5), atol=1e-6)
    np.testing.assert_allclose(np.asarray(kw.fft.rfftfreq(n)), np.fft.rfftfreq(n), atol=1e-6)
    x = np.arange(float(n))
    assert kw.fft.fftshift(kw.tensor(x)).tolist() == np.fft.fftshift(x).tolist()
    assert kw.fft.ifftshift(kw.tensor(x)).tolist() == np.fft.ifftshift(x).tolist()


def test_wrong_arguments_of_transforms():
    with pytest.raises(ValueError, match="norm"):
        kw.fft.fft(kw.ones(4), norm="unitary")
    with pytest.raises(ValueError, match="a length of 1 or more, but got 0"):
        kw.fft.fft(kw.ones(4), n=0)
    with pytest.raises(TypeError, match="`x` must be a real dtype"):
        kw.fft.rfft(kw.tensor(COMPLEX))


def test_factorisations():
    a = rng.standard_normal((3, 4, 4))
    positive = a @ a.swapaxes(1, 2) + np.eye(4)
    x, p, b = kw.tensor(a), kw.tensor(positive), rng.standard_normal((3, 4, 2))
    np.testing.assert_allclose(np.asarray(kw.linalg.solve(x, kw.tensor(b))), np.linalg.solve(a, b), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(kw.linalg.inv(x)), np.linalg.inv(a), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(kw.linalg.cholesky(p)), np.linalg.cholesky(positive), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(kw.linalg.svdvals(x)), np.linalg.svd(a, compute_uv=False), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(kw.linalg.eigvalsh(p)), np.linalg.eigvalsh(positive), rtol=1e-8)
    q, r = kw.linalg.qr(x)
    np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-12)
    np.testing.assert_allclose(np.asarray(kw.linalg.det(x)), np.linalg.det(a), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(kw.linalg.slogdet(x)[0]), np.linalg.slogdet(a)[0])
    np.testing.assert_allclose(kw.linalg.norm(x).item(), np.linalg.norm(a))


def test_the_gradient_of_a_determinant_is_its_adjugate():
    a = kw.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=kw.float64, requires_grad=True)
    kw.linalg.det(a).backward()
    np.testing.assert_allclose(np.asarray(a.grad), [[3.0, -1.0], [-1.0, 2.0]], atol=1e-12)


def test_a_singular_matrix_is_named():
    with pytest.raises(RuntimeError, match="singular"):
        kw.linalg.inv(kw.zeros(2, 2))


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e20), ("float32", 1e-25), ("float64", 1e200), ("float64", 1e-250)])
def test_singular_values_far_from_one(dtype, scale):
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]).astype(dtype)
    expected = np.linalg.svd(a.astype(np.float64))[1]
    x = kw.tensor(a * np.asarray(scale, dtype))
    for values in (kw.linalg.svdvals(x), kw.linalg.svd(x).S, kw.linalg.svd(x * (1 + 0j)).S):
        np.testing.assert_allclose(np.asarray(values, np.float64) / scale, expected, rtol=1e-5)


def test_solvers_and_factors_are_those_of_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))
    x, y = kw.tensor(a), kw.tensor(b)
    solved = kw.linalg.lstsq(x, y)
    np.testing.assert_allclose(np.asarray(solved.solution), np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-12)
    p, lower, upper = kw.linalg.lu(x)
    np.testing.assert_allclose(np.asarray(p @ lower @ upper), a, atol=1e-12)
    square = a.T @ a
    s = kw.tensor(square)
    for order in (None, 1, np.inf, "fro"):
        np.testing.assert_allclose(kw.linalg.cond(s, order).item(), np.linalg.cond(square, order), rtol=1e-9)
    with pytest.raises(ValueError, match="cond: expected"):
        kw.linalg.cond(s, "other")
    np.testing.assert_allclose(
        np.asarray(kw.linalg.multi_dot([x.T, x, s])), np.linalg.multi_dot([a.T, a, square]), atol=1e-12
    )
    np.testing.assert_allclose(np.asarray(kw.linalg.vander(x[:, 0])), np.vander(a[:, 0], increasing=True))
    factor = kw.linalg.cholesky(s)
    np.testing.assert_allclose(np.asarray(kw.cholesky_solve(s, factor)), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(np.asarray(kw.cholesky_inverse(factor)), np.linalg.inv(square), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(kw.linalg.householder_product(kw.eye(3), kw.zeros(3))), np.eye(3))
