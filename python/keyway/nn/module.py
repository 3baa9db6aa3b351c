"""``Module``: a function with parameters, submodules and buffers."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, cast

from .._errors import ShapeError
from .._keyway import Tensor, asarray, zeros
from ..autograd import no_grad
from .hooks import Handle, Hooks


class LoadResult(NamedTuple):
    """The names that a state lacks, and those that a module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class StateDictError(KeyError, RuntimeError):
    """A state whose names are not those of the module."""

    __str__ = Exception.__str__


class _ParameterType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_parameter", False)


class Parameter(metaclass=_ParameterType):
    """A tensor that a module registers when it becomes an attribute. ``requires_grad=False`` freezes it."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = zeros(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: expected a tensor, got {type(data).__name__}; call `kw.tensor` on it")
        tensor = data.detach().requires_grad_(requires_grad)
        tensor._is_parameter = True
        return tensor


def changed(**options: tuple[Any, Any]) -> str:
    """The options of ``repr`` whose value, the first of each pair, is not the usual one, the second."""
    return "".join(f", {name}={value}" for name, (value, usual) in options.items() if value != usual)


class Module:
    """The base class of layers and models. Subclasses define ``forward``.

    Attributes that are ``Parameter`` become parameters, and modules become submodules; other tensors that belong to the state are
    registered by ``register_buffer``.
    """

    training: bool
    _parameters: dict[str, Tensor]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module]

    def __init__(self) -> None:
        for name, value in (("_parameters", {}), ("_buffers", {}), ("_modules", {}), ("training", True)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before setting `{name}`")
        if name in self._parameters and isinstance(value, Tensor) and not isinstance(value, Parameter):
            raise TypeError(f"`{name}` is a parameter; assign a Parameter or None, or use `copy_` under no_grad")
        for kind in (self._parameters, self._buffers, self._modules):
            if kind is not self._buffers or not isinstance(value, Tensor):
                kind.pop(name, None)
        if isinstance(value, Module):
            self._modules[name] = value
        elif isinstance(value, Tensor) and isinstance(value, Parameter):
            self._parameters[name] = cast(Tensor, value)
        elif isinstance(value, Tensor) and name in self._buffers:
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)
            return
        self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if kind.pop(name, None) is not None:
                return
        object.__delattr__(self, name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes a tensor part of the module without being trained; ``None`` reserves the name.

        One that is not ``persistent`` moves with the module, and is no part of ``state_dict``.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: expected a tensor or None as `{name}`, got {type(tensor).__name__}")
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor
        passing = self.__dict__.setdefault("_passing", set())
        passing.discard(name) if persistent else passing.add(name)

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Makes a tensor a parameter; ``None`` sets an attribute that is none."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Module) -> None:
        """Makes a module a submodule."""
        if not isinstance(module, Module):
            raise TypeError(f"expected a Module under `{name}`, got {type(module).__name__}")
        setattr(self, name, module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result for an input."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self.__dict__.get("_hooks")
        return self.forward(*args, **kwargs) if hooks is None else hooks.call(self, args, kwargs)

    def _own_hooks(self) -> Hooks:
        hooks: Hooks = self.__dict__.setdefault("_hooks", Hooks())
        return hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Calls ``hook(module, args)`` before ``forward``; arguments that it returns replace the others.

        ``with_kwargs`` is ``hook(module, args, kwargs)``, which returns both or None.
        """
        return Handle.of(self._own_hooks().before, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Calls ``hook(module, args, output)`` after ``forward``; what it returns replaces the output.

        ``with_kwargs`` is ``hook(module, args, kwargs, output)``.
        """
        return Handle.of(self._own_hooks().after, (hook, with_kwargs), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls ``hook(module, grad_output)`` in a backward pass; gradients that it returns replace the others."""
        return Handle.of(self._own_hooks().before_backward, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Calls ``hook(module, grad_input, grad_output)`` in a backward pass; what it returns replaces ``grad_input``."""
        return Handle.of(self._own_hooks().after_backward, hook, prepend)

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names, one that occurs twice once."""
        seen: set[int] = set()

        def walk(module: Module, prefix: str) -> Iterator[tuple[str, Module]]:
            if remove_duplicate and id(module) in seen:
                return
            seen.add(id(module))
            yield prefix, module
            for name, child in module._modules.items():
                yield from walk(child, f"{prefix}.{name}" if prefix else name)

        return walk(self, prefix)

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name."""
        for name, module in self.named_modules(remove_duplicate=False):
            if name == target:
                return module
        raise AttributeError(f"{type(self).__name__} has no module `{target}`")

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one with their names."""
        return iter(self._modules.items())

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return iter(self._modules.values())

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix) if recurse else iter([(prefix, self)])
        for prefix, module in modules:
            for name, tensor in getattr(module, kind).items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{prefix}.{name}" if prefix else name), tensor

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters of this module and all below it with their dotted names, a shared one once."""
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """The parameters of this module and all below it."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and all below it with their dotted names."""
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and all below it."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._parameters.get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__} has no parameter `{target}`")
        return found

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """All parameters and buffers by dotted name, a shared one under each; without history, sharing memory with the module.

        With ``keep_vars`` they are the tensors themselves.
        """
        state = {}
        for path, module in self.named_modules(remove_duplicate=False):
            passing = module.__dict__.get("_passing", ())
            for kind in (module._parameters, module._buffers):
                for name, tensor in kind.items():
                    if tensor is not None and name not in passing:
                        named = prefix + (f"{path}.{name}" if path else name)
                        state[named] = tensor if keep_vars else tensor.detach()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> LoadResult:
        """Copies tensors or arrays into the parameters and buffers of the same names.

        Returns the names of missing and of unexpected entries. Raises StateDictError, a KeyError and RuntimeError, naming them if
        ``strict``, and ShapeError for other shapes; nothing is changed then.
        """
        if assign:
            raise NotImplementedError("load_state_dict: `assign` is not supported; values are copied into the parameters")
        state = state_dict
        own = self.state_dict()
        missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if strict and (missing or unexpected):
            raise StateDictError(f"load_state_dict: missing {missing}, unexpected {unexpected}")
        found = {name: asarray(state[name]) for name in own if name in state}
        for name, tensor in found.items():
            if tensor.shape != own[name].shape:
                raise ShapeError(f"load_state_dict: expected {name} of shape {own[name].shape}, got {tensor.shape}")
        with no_grad():
            for name, tensor in found.items():
                own[name].copy_(tensor.to(dtype=own[name].dtype, device=own[name].device))
        return LoadResult(missing, unexpected)

    def train(self, mode: bool = True) -> Module:
        """Sets this module and all below it to training, or to evaluation."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Module:
        """Sets this module and all below it to evaluation."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Sets whether gradients of the parameters are computed."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or sets them to 0."""
        for parameter in self.parameters():
            gradient = parameter.grad
            parameter.grad = None if set_to_none or gradient is None else gradient.detach() * 0

    def share_memory(self) -> Module:
        """Moves the parameters and buffers to memory that other processes can map.

        They stay the same objects. Call it before views of them and optimisers are made, which would keep the old memory.
        """
        for kind in (self.parameters(), self.buffers()):
            for tensor in kind:
                tensor.share_memory_()
        return self

    def apply(self, function: Callable[[Module], None]) -> Module:
        """Calls a function with each module, this one last."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Converts parameters and buffers of floats to a dtype, or moves all to a device.

        A parameter that changes is replaced by a new tensor, also under each other name of it; its gradient moves along. Create
        optimisers afterwards: one that holds a replaced parameter raises an error.
        """
        probe = zeros(0).to(*args, **kwargs)
        target: dict[str, Any] = {"device": probe.device} if probe.device != zeros(0).device or "device" in kwargs else {}
        replaced: dict[int, tuple[Tensor, Tensor]] = {}

        def convert(tensor: Tensor) -> Tensor:
            floats = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            moved = tensor.detach().to(*args, **kwargs) if floats else tensor.detach().to(**target)
            return tensor if moved.dtype == tensor.dtype and moved.device == tensor.device else moved

        for module in list(self.modules()):
            for name, tensor in module._parameters.items():
                if tensor is None:
                    continue
                if id(tensor) not in replaced:
                    moved = convert(tensor)
                    if moved is not tensor:
                        moved = Parameter(moved, tensor.requires_grad)
                        if tensor.grad is not None:
                            moved.grad = convert(tensor.grad)
                        tensor._replaced = True
                    replaced[id(tensor)] = tensor, moved
                module._parameters[name] = replaced[id(tensor)][1]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = convert(buffer)
        return self

    def float(self) -> Module:
        """Converts floats to float32."""
        return self.to(dtype="float32")

    def double(self) -> Module:
        """Converts floats to float64."""
        return self.to(dtype="float64")

    def half(self) -> Module:
        """Converts floats to float16."""
        return self.to(dtype="float16")

    def bfloat16(self) -> Module:
        """Converts floats to bfloat16."""
        return self.to(dtype="bfloat16")

    def cpu(self) -> Module:
        """Moves the module to host memory."""
        return self.to(device="cpu")

    def cuda(self, index: int = 0) -> Module:
        """Moves the module to a GPU of NVIDIA."""
        return self.to(device=f"cuda:{index}")

    def _place(self, device: str | None, dtype: Any) -> None:
        """Converts new parameters to the device and dtype of the constructor's arguments."""
        if device is not None or dtype is not None:
            self.to(device=device, dtype=dtype)

    def extra_repr(self) -> str:
        """The arguments that ``repr`` shows."""
        return ""

    def __repr__(self) -> str:
        if not self._modules:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])
