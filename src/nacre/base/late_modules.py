"""Lazy execution of nacre's modules.

``from nacre.serve import server_web`` binds the module, but the module runs only when one of its
attributes is first used. ``from nacre.serve.server_web import Web`` runs it immediately. Use the
first form for modules that load slowly and are not always needed.
"""

from __future__ import annotations

import sys
from _thread import RLock
from importlib.machinery import PathFinder

TYPE_CHECKING = (
    False  # type checkers treat this as True; importing typing is slower than this module
)
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


class _NotRunYet(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        if name != "__spec__":
            loader: Any = ModuleType.__getattribute__(self, "__spec__").loader
            loader.run(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "__class__":
            loader: Any = ModuleType.__getattribute__(self, "__spec__").loader
            loader.run(self)
        ModuleType.__setattr__(self, name, value)


class _Loader:
    def __init__(self, own: Any) -> None:
        self._own = own
        self._lock = RLock()
        self._is_running = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._own.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _NotRunYet

    def run(self, module: ModuleType) -> None:
        with self._lock:
            if self._is_running or type(module) is ModuleType:
                return
            self._is_running = True
            try:
                self._own.exec_module(module)
                module.__class__ = ModuleType
            finally:
                self._is_running = False


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name.startswith("nacre.") else None
        if spec and spec.loader and not spec.submodule_search_locations:
            lazy: Any = _Loader(spec.loader)
            spec.loader = lazy
        return spec


def install() -> None:
    """Make all later imports of nacre's modules lazy."""
    lazy: Any = _Finder
    sys.meta_path.insert(0, lazy)
