"""What a shell text was found to run. No I/O. Made by ``shell.read_shell``, judged by ``decide.rules.permission``."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

_STANDARD_DIRECTORIES = frozenset(
    {"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/snap/bin"}
)

# Variables that make an otherwise known program load, start or look up other code.
_STEERING = re.compile(
    r"PATH|IFS|ENV|BASH_ENV|BASH_FUNC_.*|BASHOPTS|SHELLOPTS|SHELL|PROMPT_COMMAND|PS[0-4]|CDPATH|GLOBIGNORE|HOME"
    r"|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|NLSPATH|TERMINFO.*|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN|XDG_.*"
    r"|PYTHON.*|PERL.*|RUBY.*|GEM_.*|NODE_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|LUA_.*|PHP.*"
    r"|GIT_.*|SSH_ASKPASS.*|SUDO_.*|.*PAGER|LESS.*|MORE|EDITOR|.*_EDITOR|VISUAL|BROWSER|FCEDIT|SYSTEMD_UNIT_PATH"
    r"|DOCKER_.*|COMPOSE_.*|CONTAINER_.*|CONTAINERS_.*|KUBECONFIG|KUBE_.*|KUBECTL_.*|HELM_.*|ANSIBLE_.*"
    r"|AWS_(?:CONFIG|SHARED|CA|ENDPOINT).*|TAR_OPTIONS|TAPE|RSYNC_.*|CURL_HOME|WGETRC|GREP_OPTIONS|AWK.*|GAWK.*|POSIXLY_CORRECT"
    r"|PGSERVICE.*|PGSYSCONFDIR|PSQL.*|MYSQL_HOME|SSL_.*|OPENSSL_.*|(?i:https?|all|no|ftp)_(?i:proxy)"
    r"|CLAUDE.*|ANTHROPIC.*|OPSLADDER.*"
)


class OpaqueKind(StrEnum):
    """Why a part of a text could not be seen through. The value is stored, counted and shown."""

    SYNTAX_ERROR = "syntax_error"
    MISREAD = "misread"
    UNSUPPORTED = "unsupported"
    CONTROL_CHARACTER = "control_character"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    TOO_MANY = "too_many"
    VARIABLE_COMMAND = "variable_command"
    DYNAMIC_SCRIPT = "dynamic_script"
    PIPED_INTO_SHELL = "piped_into_shell"
    ENCODED = "encoded"
    STDIN_SCRIPT = "stdin_script"
    SCRIPT_FILE = "script_file"
    INLINE_CODE = "inline_code"
    UNKNOWN_WRAPPER_OPTION = "unknown_wrapper_option"
    WRAPPER_ARGUMENT = "wrapper_argument"
    ALIAS = "alias"
    REDEFINITION = "redefinition"
    SCHEDULED = "scheduled"
    TERMINAL_INPUT = "terminal_input"
    EVALUATED_VALUE = "evaluated_value"
    INTERNAL = "internal"


class Role(StrEnum):
    """What a command is to the commands it starts."""

    PLAIN = "plain"  # starts nothing that could be seen
    WRAPPER = "wrapper"  # does nothing itself, writes and steers nothing; what it starts is listed after it
    CARRIER = "carrier"  # acts itself, and what it starts is listed after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as far as it is known before the shell runs.

    ``text`` has the quoting removed; an unknown part stands in it as it was written (``/var/$name``).
    """

    text: str
    dynamic: bool = False  # holds a value that is only known at run time
    glob: bool = False  # holds an unquoted pattern: may become any number of file names
    splits: bool = False  # an unquoted value: may become no word, or several
    leading: bool = False  # the unknown part is the very beginning

    @property
    def static(self) -> bool:
        """The shell will pass on exactly ``text``, as exactly one word."""
        return not (self.dynamic or self.glob or self.splits)

    @property
    def maybe_option(self) -> bool:
        """The word, or a word it turns into, may start with a dash without showing it."""
        return self.leading or self.splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option token: ``-rf`` is named ``-rf``, ``-r`` and ``-f``; ``--a=b`` is named ``--a`` and has a value."""

    text: str
    names: tuple[str, ...]
    value: str | None = None
    dynamic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection. For a here-document or here-string ``target`` is its text."""

    operator: str
    target: Word
    writes: bool
    descriptor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``NAME=value``: before a command, on its own, given to ``env`` or ``sudo``, or declared by ``export`` and kin."""

    name: str
    value: Word

    @property
    def steers(self) -> bool:
        """Setting this can change which code a known program runs (``PATH``, ``LD_PRELOAD``, ``BASH_ENV`` …)."""
        if self.name.endswith("PAGER") and self.value.static and self.value.text in ("", "cat"):
            return False
        return _STEERING.fullmatch(self.name) is not None


# A tuple: there is one for every command of a text, and a frozen dataclass takes several times as long to make.
class Command(NamedTuple):
    """One simple command the text could run.

    ``name`` is empty for a statement that only assigns or redirects; the redirections of a whole loop or group are
    reported like that too. ``argv`` starts with the program. ``words`` are the arguments that are not options; since
    nobody knows every program's options, the separate value of one (``-n 5``) counts as a word. ``via`` names what the
    command is started by, outermost first: wrappers, and the loops and functions that may run it any number of times.
    """

    name: str
    path: str
    argv: tuple[Word, ...]
    words: tuple[Word, ...]
    options: tuple[Option, ...]
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    via: tuple[str, ...] = ()
    host: str | None = None
    container: str | None = None
    user: str | None = None
    role: Role = Role.PLAIN

    @property
    def standard_path(self) -> bool:
        """The program is found on the search path or named in a system directory."""
        directory, slash, _ = self.path.rpartition("/")
        return not slash or directory in _STANDARD_DIRECTORIES

    def has_option(self, *names: str) -> bool:
        """Whether one of these may be set: a long one also when abbreviated, a short one also inside a bundle."""
        for option in self.options:
            for written in option.names:
                for name in names:
                    if written == name or (len(written) > 2 and written[:2] == "--" and name.startswith(written)):
                        return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A part of the text that may run something nobody could name beforehand."""

    kind: OpaqueKind
    text: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Every command a text could run, in reading order, and everything that could not be seen through."""

    commands: tuple[Command, ...]
    opaque: tuple[Opaque, ...]
