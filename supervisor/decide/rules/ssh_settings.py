"""Whether the settings of an ``ssh`` command leave nothing open behind it. Pure. Called from ``shell_rules``.

What runs on the other host is judged by itself. What is looked at here is the way there: a forwarded agent, a master
connection that stays, keys that are written down somewhere.
"""

import re
from typing import Final

from supervisor.decide.rules.arguments import arguments_of
from supervisor.model.reading import Command

_VALUED: Final = {f"-{letter}": True for letter in "BbcDEeFIiJLlmOopPQRSWw"}
_SETTING: Final = re.compile(r"\s*(\w+)\s*(?:=|\s)\s*(.*?)\s*", re.DOTALL)
_HARMLESS: Final = frozenset(
    {
        "batchmode",
        "connecttimeout",
        "connectionattempts",
        "loglevel",
        "serveraliveinterval",
        "serveralivecountmax",
        "port",
    }
    | {"user", "passwordauthentication", "preferredauthentications", "numberofpasswordprompts", "requesttty"}
    | {"addressfamily", "proxyjump", "identitiesonly", "identityfile", "compression", "kbdinteractiveauthentication"}
    | {"pubkeyauthentication", "gssapiauthentication", "hostkeyalgorithms", "tcpkeepalive", "clearallforwardings"}
    | {
        "stricthostkeychecking",
        "exitonforwardfailure",
        "ciphers",
        "macs",
        "kexalgorithms",
        "checkhostip",
        "visualhostkey",
        "escapechar",
    }
)
_HARMLESS_VALUES: Final = {
    "userknownhostsfile": ("/dev/null",),
    "globalknownhostsfile": ("/dev/null",),
    "controlmaster": ("no",),
    "controlpath": ("none",),
    "forwardagent": ("no",),
    "forwardx11": ("no",),
    "permitlocalcommand": ("no",),
}


def doubtful_setting(command: Command) -> str | None:
    """The first setting that does more than say how to get there."""
    for option in arguments_of(command, _VALUED).options:
        # Further right they are options of the remote command.
        if option.name != "-o" or option.at > 1 or option.value is None:
            continue
        found = _SETTING.fullmatch(option.value.text)
        key = found[1].lower() if found else ""
        if found is None or (key not in _HARMLESS and found[2].lower() not in _HARMLESS_VALUES.get(key, ())):
            return option.value.text
    return None
