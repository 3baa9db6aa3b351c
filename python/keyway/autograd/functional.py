"""Matrices of derivatives, and their products with vectors."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .._functions import stack
from .._keyway import Tensor, grad, ones_like, zeros_like
from .modes import enable_grad

Tensors = Tensor | Sequence[Tensor]


def _tuple(value: Tensors) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _leaves(inputs: Tensors, create_graph: bool) -> tuple[Tensor, ...]:
    """Leaves with the values of the inputs; with ``create_graph``, views that stay connected to the graph of the inputs."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in _tuple(inputs))
    return tuple(x.detach().requires_grad_() for x in _tuple(inputs))


def _like(value: Tensors, made: Sequence[Tensor]) -> Any:
    """One tensor or a tuple, as ``value`` is."""
    return made[0] if isinstance(value, Tensor) else tuple(made)


def _grads(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], vectors: Sequence[Tensor], create_graph: bool, strict: bool = False
) -> list[Tensor]:
    """The gradients; where a result does not depend on an input, zeros, or with ``strict`` an error."""
    at = [index for index, output in enumerate(outputs) if output.requires_grad]
    made: Sequence[Tensor | None] = [None] * len(inputs)
    if at:
        made = grad([outputs[index] for index in at], inputs, [vectors[index] for index in at], True, create_graph, True)
    for index, gradient in enumerate(made):
        if strict and (gradient is None or len(at) < len(outputs)):
            raise RuntimeError(f"strict: expected each result to depend on input {index}, but one does not")
    return [zeros_like(x) if gradient is None else gradient for x, gradient in zip(inputs, made)]


def _vectors(v: Tensors | None, like: Sequence[Tensor], name: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{name}: expected `v` where there is more than one element, got None")
        return (ones_like(like[0]),)
    vectors = _tuple(v)
    for vector, tensor in zip(vectors, like, strict=True):
        if vector.shape != tensor.shape:
            raise RuntimeError(f"{name}: expected a vector of shape {tensor.shape}, got {vector.shape}")
    return vectors


def _result(tensors: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    return list(tensors) if create_graph else [tensor.detach() for tensor in tensors]


def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The results of a function, and the product of a vector with the matrix of its derivatives."""
    with enable_grad():
        leaves = _leaves(inputs, create_graph)
        outputs = func(*leaves)
        made = _tuple(outputs)
        products = _grads(made, leaves, _vectors(v, made, "vjp"), create_graph, strict)
    return _like(outputs, _result(made, create_graph)), _like(inputs, _result(products, create_graph))


def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The results of a function, and the product of the matrix of its derivatives with a vector, by two backward passes."""
    with enable_grad():
        leaves = _leaves(inputs, create_graph)
        outputs = func(*leaves)
        made = _tuple(outputs)
        # Linear in the incoming gradients, so that its derivative is the product.
        dummies = [ones_like(output).requires_grad_() for output in made]
        gradients = _grads(made, leaves, dummies, True, strict)
        products = _grads(gradients, dummies, _vectors(v, leaves, "jvp"), create_graph)
    return _like(outputs, _result(made, create_graph)), _like(outputs, _result(products, create_graph))


def jacobian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """The derivatives of each element of the results by each element of the inputs, of shape (result's shape, input's shape).

    A tuple for each of several results, of a tuple for each of several inputs.
    """
    with enable_grad():
        leaves = _leaves(inputs, create_graph)
        outputs = func(*leaves)
        matrices = []
        for output in _tuple(outputs):
            flat = output.reshape(-1)
            rows = [
                _grads([flat[index]], leaves, [ones_like(flat[index])], create_graph, strict)
                for index in range(flat.numel())
            ]
            of_inputs = []
            for number, leaf in enumerate(leaves):
                sizes = (*output.shape, *leaf.shape)
                whole = stack([row[number] for row in rows]).reshape(sizes) if rows else leaf.new_zeros(sizes)
                of_inputs.append(whole)
            matrices.append(_like(inputs, _result(of_inputs, create_graph)))
    return matrices[0] if isinstance(outputs, Tensor) else tuple(matrices)


def _gradient(func: Callable[..., Any], inputs: Tensors, name: str, strict: bool) -> Callable[..., Any]:
    """The gradient of a function of one element."""

    def called(*leaves: Tensor) -> Any:
        output = func(*leaves)
        if not isinstance(output, Tensor) or output.numel() != 1:
            raise RuntimeError(f"{name}: expected a function whose result has one element")
        return _like(inputs, _grads([output], leaves, [ones_like(output)], True, strict))

    return called


def hessian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """The second derivatives of a function of one element."""
    return jacobian(_gradient(func, inputs, "hessian", strict), inputs, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of a function of one element, and the product of its second derivatives with a vector."""
    _, product = jvp(_gradient(func, inputs, "hvp", strict), inputs, v, create_graph, strict)
    return func(*_tuple(inputs)), product


def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of a function of one element, and the product of a vector with its second derivatives."""
    _, product = vjp(_gradient(func, inputs, "vhp", strict), inputs, v, create_graph, strict)
    return func(*_tuple(inputs)), product
