"""Take secrets out of texts and values before they are stored, shown or sent. Pure. Made by ``settings``.

Three nets, one behind the other: the values of secrets that are known, in the forms they are written in; what stands
beside a name that means a secret; and what has the shape of a token wherever it stands. Every net takes time in
proportion to the length of a text. Masking what is masked already changes nothing.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from supervisor.decide.masking.assignments import Assignments
from supervisor.decide.masking.logins import mask_logins
from supervisor.decide.masking.manifests import mask_manifests
from supervisor.decide.masking.mark import MASK
from supervisor.decide.masking.names import SecretNames, is_placeholder
from supervisor.decide.masking.shapes import mask_shapes
from supervisor.decide.masking.values import forms_of, without_cut_off

# Nobody reads what lies deeper, and a hostile nesting must not exhaust the stack.
_DEPTH = 100


class Masker:
    """Masks the given values, what the given names name, and everything that looks like a secret."""

    def __init__(self, *, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        self._values = frozenset(values)
        self._names = SecretNames(names)

    def __or__(self, other: "Masker") -> "Masker":
        """One that masks what either of them does."""
        names = self._names.configured | other._names.configured
        return Masker(values=self._values | other._values, names=names)

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        return forms_of(self._values)

    @cached_property
    def _assignments(self) -> Assignments:
        return Assignments(self._names)

    def text(self, text: str) -> str:
        """The text with a mark in the place of every secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        text = without_cut_off(text, self._values)
        return mask_manifests(self._assignments.mask(mask_logins(mask_shapes(text))))

    def value(self, value: object) -> object:
        """The same for what JSON can hold. What stands under the name of a secret is masked whole."""
        return self._value(value, _DEPTH)

    def _value(self, value: object, depth: int) -> object:
        match value:
            case str():
                return self.text(value)
            case Mapping() | list() | tuple() if depth == 0:
                return MASK
            case Mapping():
                return {self._key(key): self._under(key, inner, depth - 1) for key, inner in value.items()}
            case list() | tuple():
                return [self._value(item, depth - 1) for item in value]
            case _:
                return value

    def _key(self, key: object) -> object:
        return self.text(key) if isinstance(key, str) else key

    def _under(self, key: object, value: object, depth: int) -> object:
        if not isinstance(key, str) or self._names.kind(key) is None:
            return self._value(value, depth)
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value) if is_placeholder(value) else MASK
            case _:
                return MASK
