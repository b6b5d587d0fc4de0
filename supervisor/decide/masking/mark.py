"""What stands in the place of a secret. Pure. Shared by the modules of ``decide.masking``."""

from typing import Final

MASK: Final = "[masked]"
