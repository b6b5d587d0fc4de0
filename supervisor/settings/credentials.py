"""Secrets that systemd hands to a service as files. Reads them. Used by ``load``.

A unit's ``LoadCredential=`` puts each into a directory that only the service can read; one that is not there is not
needed. They stand in for environment variables, which win where both are set.
"""

from collections.abc import Mapping
from pathlib import Path

from supervisor.errors import ConfigError

DIRECTORY = "CREDENTIALS_DIRECTORY"
VARIABLES = {
    "opsladder.api-key": "ANTHROPIC_API_KEY",
    "opsladder.oauth-token": "CLAUDE_CODE_OAUTH_TOKEN",
    "opsladder.web-token": "OPSLADDER_WEB__TOKEN",
    "opsladder.database-url": "OPSLADDER_STATE__DATABASE_URL",
}


def with_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with what systemd handed over."""
    directory = environ.get(DIRECTORY)
    if not directory:
        return dict(environ)
    found = {variable: _read(Path(directory) / name) for name, variable in VARIABLES.items()}
    return {**{variable: secret for variable, secret in found.items() if secret}, **environ}


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The credential {file.name} cannot be read: {error}.") from error
