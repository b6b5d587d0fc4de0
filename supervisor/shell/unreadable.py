"""How reading stops at what cannot be seen through. Pure. Raised and caught inside the package."""

from supervisor.model.reading import Opaque, OpaqueKind


class Unreadable(Exception):
    """Reading stops here, on purpose. Caught inside the package and turned into an ``Opaque``."""

    def __init__(self, kind: OpaqueKind, text: str, sentence: str) -> None:
        super().__init__(sentence)
        self.opaque = Opaque(kind=kind, text=text, sentence=sentence)
