"""Who gives a command. Asks the system. Used by commands whose author goes on record."""

import os
import pwd
import socket


def who() -> str:
    """The user this command runs as, and where. Of a number without a name, the number."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return f"{name}@{socket.gethostname()}"
