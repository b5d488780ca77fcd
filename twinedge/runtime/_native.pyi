"""The C runtime; see ``_native.c``."""

from typing import Any

class Model:
    def __new__(cls, pack: Any, kernel: str | None = None) -> Model: ...
    def predict(
        self,
        queries: Any,
        out: Any,
        members: Any,
        neighbors: int,
        levels: Any = None,
        flags: Any = None,
        /,
    ) -> int: ...
    def kernel(self) -> str: ...
    def kernels(self) -> list[str]: ...
