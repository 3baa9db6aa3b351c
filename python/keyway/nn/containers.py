"""Modules, parameters and names of them in containers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Iterable, Iterator, Mapping

from .._keyway import Tensor
from .module import Module, Parameter


class Sequential(Module):
    """Modules that are called one after another: as arguments, or a dict of them by name."""

    def __init__(self, *modules: Module | dict[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            named: Iterable[tuple[str, Any]] = modules[0].items()
        else:
            named = ((str(index), module) for index, module in enumerate(modules))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, x: Any) -> Any:
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(dict(list(self._modules.items())[index]))
        return list(self.children())[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(list(self._modules)[index], module)

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self


class _List(Module):
    """Members by their index."""

    _kind = "_modules"

    def _set(self, index: int, member: Any) -> None:
        setattr(self, str(index), member)

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = self.__dict__[self._kind]
        return members

    def append(self, member: Any) -> Any:
        """Adds a member at the end."""
        self._set(len(self), member)
        return self

    def extend(self, members: Iterable[Any]) -> Any:
        """Adds members at the end."""
        for member in members:
            self.append(member)
        return self

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._members().values()))

    def __getitem__(self, index: int | slice) -> Any:
        members = list(self._members().values())
        return type(self)(members[index]) if isinstance(index, slice) else members[index]  # type: ignore[call-arg]

    def __setitem__(self, index: int, member: Any) -> None:
        self._set(range(len(self))[index], member)

    def __delitem__(self, index: int) -> None:
        members = list(self._members().values())
        del members[index]
        self._members().clear()
        self.extend(members)

    def __iadd__(self, members: Iterable[Any]) -> Any:
        return self.extend(members)


class ModuleList(_List):
    """A list of modules, which are parts of the module that holds it."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def _set(self, index: int, member: Any) -> None:
        self.add_module(str(index), member)

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module at an index."""
        members = list(self)
        members.insert(index, module)
        self._modules.clear()
        self.extend(members)


class ParameterList(_List):
    """A list of parameters, which are parts of the module that holds it; other tensors become parameters."""

    _kind = "_parameters"

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values)

    def _set(self, index: int, member: Any) -> None:
        setattr(self, str(index), member if isinstance(member, Parameter) else Parameter(member))


class _Dict(Module):
    """Members by their name."""

    _kind = "_modules"

    def __init__(self, members: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(members or {})

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = self.__dict__[self._kind]
        return members

    def __getitem__(self, name: str) -> Any:
        return self._members()[name]

    def __delitem__(self, name: str) -> None:
        del self._members()[name]

    def __len__(self) -> int:
        return len(self._members())

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __contains__(self, name: object) -> bool:
        return name in self._members()

    @abstractmethod
    def __setitem__(self, name: str, member: Any) -> None:
        """Adds a member, or replaces the member of this name."""

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._members().keys()

    def values(self) -> Iterable[Any]:
        """The members."""
        return self._members().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and members."""
        return self._members().items()

    def pop(self, name: str) -> Any:
        """Removes a member and returns it."""
        return self._members().pop(name)

    def clear(self) -> None:
        """Removes all members."""
        self._members().clear()

    def update(self, members: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds members, or replaces those of the same names."""
        for name, member in members.items() if isinstance(members, Mapping) else members:
            self[name] = member


class ModuleDict(_Dict):
    """Modules by name, which are parts of the module that holds them."""

    def __setitem__(self, name: str, member: Any) -> None:
        self.add_module(name, member)


class ParameterDict(_Dict):
    """Parameters by name, which are parts of the module that holds them; other tensors become parameters."""

    _kind = "_parameters"

    def __setitem__(self, name: str, member: Any) -> None:
        parameter: Any = member if isinstance(member, Parameter) else Parameter(member)
        self.register_parameter(name, parameter)
