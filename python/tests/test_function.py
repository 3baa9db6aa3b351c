"""Functions whose derivative Python defines, hooks, and the garbage that both leave."""

import gc
import threading
import traceback
import weakref

import numpy as np
import pytest

import keyway as kw
from keyway.autograd import Function, gradcheck, gradgradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Scale(Function):
    """Two results, an argument that is no tensor, and ``None`` among the saved tensors."""

    @staticmethod
    def forward(ctx, x, factor, y=None):
        ctx.factor = factor
        ctx.save_for_backward(x, None, y)
        ctx.seen = ctx.needs_input_grad
        return x * factor, x.sum()

    @staticmethod
    def backward(ctx, first, second):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None and x.shape == first.shape
        return first * ctx.factor + second, None, None


def leaf(*values, dtype=kw.float64):
    return kw.tensor(values, dtype=dtype, requires_grad=True)


def test_a_function_and_its_derivatives():
    x = leaf(0.5, 1.0)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "Exp" and y.requires_grad and not y.is_leaf
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.5, 1.0]))
    assert gradcheck(Exp.apply, x) and gradgradcheck(Exp.apply, x)
    (first,) = kw.grad(Exp.apply(x).sum(), x, create_graph=True)
    (second,) = kw.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), np.exp([0.5, 1.0]))


def test_arguments_and_results_of_several_kinds():
    x = leaf(1.0, 2.0)
    scaled, total = Scale.apply(x, 3.0)
    assert scaled.tolist() == [3.0, 6.0] and total.item() == 3.0
    (scaled.sum() + 2 * total).backward()
    assert x.grad.tolist() == [5.0, 5.0]
    x.grad = None
    # A result without a gradient has zeros.
    Scale.apply(x, 3.0, kw.ones(2))[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with kw.no_grad():
        assert not Scale.apply(x, 2.0)[0].requires_grad


def test_gradients_that_are_not_materialised():
    seen = []

    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return first * 2

    x = leaf(1.0)
    Both.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2.0] and seen[0][1] is None


def test_results_without_a_gradient():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            rounded = values.round()
            ctx.mark_non_differentiable(indices, rounded)
            ctx.save_for_backward(indices)
            return values, indices, rounded

        @staticmethod
        def backward(ctx, grad, _indices, _rounded):
            (indices,) = ctx.saved_tensors
            return kw.zeros_like(grad).scatter(0, indices, grad)

    x = leaf(2.0, 1.0)
    values, indices, rounded = Sorted.apply(x)
    assert values.requires_grad and not indices.requires_grad and not rounded.requires_grad
    (values * kw.tensor([1.0, 10.0], dtype=kw.float64)).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_an_argument_that_is_changed_in_place():
    class Negate(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(-1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return -grad

    x = leaf(1.0, 2.0)
    y = x * 3
    made = Negate.apply(y)
    assert made is y and y.tolist() == [-3.0, -6.0]
    y.sum().backward()
    assert x.grad.tolist() == [-3.0, -3.0]
    with pytest.raises(kw.AutogradError, match="leaf"):
        Negate.apply(leaf(1.0))


def test_forward_without_a_context():
    class Double(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(1.0)
    Double.apply(x, 4).sum().backward()
    assert x.grad.item() == 4.0


def wrong(result):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return result(grad)

    return Wrong.apply(leaf(1.0, 2.0), leaf(2.0, 3.0)).sum()


def test_wrong_gradients_are_named():
    with pytest.raises(RuntimeError, match="Wrong.backward: expected a gradient for each of the 2 arguments of forward, got 1"):
        wrong(lambda grad: grad).backward()
    with pytest.raises(TypeError, match="expected a tensor or None as the gradient of argument 1, got float"):
        wrong(lambda grad: (grad, 1.0)).backward()
    with pytest.raises(kw.Error, match="shape"):
        wrong(lambda grad: (grad, kw.ones(3))).backward()
    with pytest.raises(TypeError, match="forward: expected a tensor or a tuple of tensors, got list"):

        class Listed(Function):
            @staticmethod
            def forward(ctx, x):
                return [x]

        Listed.apply(leaf(1.0))
    with pytest.raises(TypeError, match="call `Exp.apply"):
        Exp()
    with pytest.raises(TypeError, match="save_for_backward: expected tensors or None, got int"):

        class Saves(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(1)
                return x * 1

        Saves.apply(leaf(1.0))


def test_an_exception_keeps_its_type_and_traceback():
    class Fault(Exception):
        pass

    def deep():
        raise Fault("of the derivative")

    class Raises(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            deep()

    with pytest.raises(Fault, match="of the derivative") as caught:
        (Raises.apply(leaf(1.0)) * 2).sum().backward()
    assert "deep" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    x = leaf(1.0)
    x.register_hook(lambda grad: deep())
    with pytest.raises(Fault):
        (x * 2).sum().backward()


def test_saved_tensors_are_checked_and_freed():
    x = leaf(1.0)
    y = Exp.apply(x)
    y.sum().backward()
    with pytest.raises(kw.AutogradError, match="retain_graph"):
        y.sum().backward()

    class Input(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    z = leaf(3.0) * 1
    made = Input.apply(z)
    z.add_(1)
    with pytest.raises(kw.AutogradError, match="in place"):
        made.sum().backward()


def test_a_derivative_that_cannot_be_differentiated():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @kw.autograd.once_differentiable
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf(3.0)
    Once.apply(x).sum().backward()
    assert x.grad.item() == 6.0
    (grad,) = kw.grad((Once.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_backward_on_another_thread():
    x = kw.ones(5000, requires_grad=True)
    results, errors = [], []

    def work():
        try:
            for _ in range(20):
                y = Exp.apply(x * 1.0)
                y.register_hook(lambda grad: grad * 1)
                results.append(kw.grad(y.sum(), x)[0][0].item())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "deadlock"
    assert not errors
    np.testing.assert_allclose(results, np.e, rtol=1e-5)
    # One graph, whose passes run on two threads at a time.
    y = Exp.apply(x).sum()
    passes = [threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(2)]
    for thread in passes:
        thread.start()
    for thread in passes:
        thread.join(60)
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.e, rtol=1e-5)


class Marked:
    """An object whose end can be seen."""


def collected(make):
    mark = Marked()
    seen = weakref.ref(mark)
    make(mark)
    del mark
    gc.collect()
    return seen() is None


def test_cycles_are_collected():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x, mark):
            ctx.mark = mark
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    def through_a_context(mark):
        # The result's history is the context, which has the result.
        Keeps.apply(leaf(1.0), mark)

    def through_a_hook_of_a_leaf(mark):
        x = leaf(1.0)
        x.register_hook(lambda grad: (x, mark) and None)

    def through_a_hook_of_a_result(mark):
        y = leaf(1.0) * 2
        y.register_hook(lambda grad: (y, mark) and None)

    def after_an_accumulation(mark):
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda leaf: (x, mark) and None)
        (x * 2).sum().backward()

    def through_an_attribute(mark):
        x = leaf(1.0)
        x.own, x.mark = x, mark

    def after_a_pass(mark):
        Keeps.apply(leaf(1.0), mark).sum().backward()

    for make in (
        through_a_context,
        through_a_hook_of_a_leaf,
        through_a_hook_of_a_result,
        after_an_accumulation,
        through_an_attribute,
        after_a_pass,
    ):
        assert collected(make), make.__name__


def test_what_is_in_use_is_not_collected():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            assert ctx.y.tolist() == [2.0]
            return grad * 2

    x = leaf(1.0)
    seen = []
    total = Keeps.apply(x).sum()
    x.register_hook(lambda grad: seen.append(x) and None)
    middle = x * 3
    middle.register_hook(lambda grad: seen.append(middle) and None)
    other = middle.sum()
    gc.collect()
    (total + other).backward()
    assert x.grad.item() == 5.0 and len(seen) == 2


def test_hooks_of_tensors():
    x = leaf(1.0, 2.0)
    handle = x.register_hook(lambda grad: grad * 10)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]
    handle.remove()
    handle.remove()
    x.grad = None
    with x.register_post_accumulate_grad_hook(lambda param: param.grad.mul_(2)):
        (x * 2).sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(kw.AutogradError):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(kw.AutogradError):
        kw.ones(2).register_hook(print)
    y = x * 2
    y.register_hook(lambda grad: 1.0)
    with pytest.raises(TypeError, match="a hook returns a tensor or None, got float"):
        y.sum().backward()


def test_nodes_of_the_graph():
    x = leaf(1.0)
    y = (x * 2).exp()
    node, index = y.grad_fn.next_functions[0]
    assert y.grad_fn.name() == "exp" and node.name() == "mul" and index == 0
    accumulates = node.next_functions[0][0]
    assert accumulates.name() == "accumulate_grad" and accumulates.variable.tolist() == [1.0]
    assert x.grad_fn is None and node == y.grad_fn.next_functions[0][0] and len({node, y.grad_fn}) == 2
    assert repr(node) == "<mul>" and node.output_shapes == ((1,),)


def test_a_collection_while_an_object_is_created_does_not_visit_it():
    # Each allocation collects, also that of the dict of a new tensor.
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert len([kw.full((2,), float(n)) for n in range(200)]) == 200
    finally:
        gc.set_threshold(*threshold)
