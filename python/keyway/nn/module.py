"""``Module``: a function with parameters, submodules and buffers."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator

from .._keyway import Tensor
from ..autograd import no_grad


def Parameter(data: Tensor, requires_grad: bool = True) -> Tensor:
    """A tensor that a module trains: a leaf that requires a gradient. A module registers each such tensor among its attributes."""
    return data.detach().requires_grad_(requires_grad)


class Module:
    """The base class of layers and models. Subclasses define ``forward``.

    Attributes that are tensors requiring a gradient become parameters, and modules become submodules; other tensors that belong
    to the state are registered by ``register_buffer``.
    """

    training: bool

    def __init__(self) -> None:
        for name, value in (("_parameters", {}), ("_buffers", {}), ("_modules", {}), ("training", True)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before setting `{name}`")
        for kind in (self._parameters, self._buffers, self._modules):
            if kind is not self._buffers or not isinstance(value, Tensor):
                kind.pop(name, None)
        if isinstance(value, Module):
            self._modules[name] = value
        elif isinstance(value, Tensor) and name in self._buffers:
            self._buffers[name] = value
        elif isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
            self._parameters[name] = value
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

    def register_buffer(self, name: str, tensor: Tensor | None) -> None:
        """Makes a tensor part of the state without being trained; ``None`` reserves the name."""
        self._buffers[name] = tensor

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result for an input."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names, each once."""
        seen: set[int] = set()

        def walk(module: Module, prefix: str) -> Iterator[tuple[str, Module]]:
            if id(module) in seen:
                return
            seen.add(id(module))
            yield prefix, module
            for name, child in module._modules.items():
                yield from walk(child, f"{prefix}.{name}" if prefix else name)

        return walk(self, prefix)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return iter(self._modules.values())

    def _named(self, kind: str) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, tensor in getattr(module, kind).items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{prefix}.{name}" if prefix else name), tensor

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters of this module and all below it with their dotted names, a shared one once."""
        return self._named("_parameters")

    def parameters(self) -> Iterator[Tensor]:
        """The parameters of this module and all below it."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and all below it with their dotted names."""
        return self._named("_buffers")

    def state_dict(self) -> dict[str, Tensor]:
        """All parameters and buffers by dotted name, without history; they share memory with the module."""
        state = {}
        for prefix, module in self.named_modules():
            for kind in (module._parameters, module._buffers):
                for name, tensor in kind.items():
                    if tensor is not None:
                        state[f"{prefix}.{name}" if prefix else name] = tensor.detach()
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Copies tensors into the parameters and buffers of the same names.

        Raises KeyError naming all missing and unexpected entries, and ValueError for other shapes; nothing is changed then.
        """
        own = self.state_dict()
        missing, unexpected = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if missing or unexpected:
            raise KeyError(f"load_state_dict: missing {missing}, unexpected {unexpected}")
        for name, tensor in own.items():
            if tensor.shape != state[name].shape:
                raise ValueError(f"load_state_dict: expected {name} of shape {tensor.shape}, got {state[name].shape}")
        with no_grad():
            for name, tensor in own.items():
                tensor.copy_(state[name].to(dtype=tensor.dtype, device=tensor.device))

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

    def zero_grad(self) -> None:
        """Removes the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.grad = None

    def apply(self, function: Callable[[Module], None]) -> Module:
        """Calls a function with each module, this one last."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Converts parameters and buffers of floats to a dtype or moves all to a device, in this module."""
        for module in list(self.modules()):
            for name, tensor in module._parameters.items():
                module._parameters[name] = Parameter(tensor.detach().to(*args, **kwargs), tensor.requires_grad)
            for name, tensor in module._buffers.items():
                if tensor is not None and tensor.dtype.is_floating_point:
                    module._buffers[name] = tensor.to(*args, **kwargs)
        return self

    def extra_repr(self) -> str:
        """The arguments that ``repr`` shows."""
        return ""

    def __repr__(self) -> str:
        if not self._modules:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class Sequential(Module):
    """Modules that are called one after another."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        for index, module in enumerate(modules):
            setattr(self, str(index), module)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]


class ModuleList(Module):
    """A list of modules, which are parts of the module that holds it."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        setattr(self, str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]
