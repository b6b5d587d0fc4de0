"""Take secrets out of texts and values. Pure. ``Masker`` is made by ``settings`` and used wherever something is kept.

Its nets are ``values`` (secrets that are known), ``assignments``, ``logins`` and ``manifests`` (what stands beside a
telling name, see ``names``), and ``shapes`` (what looks like a token). ``mark`` is what they leave in its place.
"""

from supervisor.decide.masking.masker import Masker

__all__ = ["Masker"]
