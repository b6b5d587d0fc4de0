"""Judge one simple command by the rules of a tier. Pure. Called from ``permission``."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from supervisor.decide.rules.arguments import arguments_of
from supervisor.decide.rules.http_read import metadata_host
from supervisor.decide.rules.matching import generously, is_patterned, rules_out, steering_assignments, strictly
from supervisor.decide.rules.off_limits import reads_unknown_files
from supervisor.decide.rules.path_names import certain_path
from supervisor.decide.rules.path_patterns import fits
from supervisor.decide.rules.shell_text import in_the_same_shell
from supervisor.decide.rules.shut_paths import Shut
from supervisor.decide.rules.ssh_settings import doubtful_setting
from supervisor.decide.rules.verdicts import Finding, by_default, by_rule, command_text, examples, shown
from supervisor.model.reading import Command, Redirect, Role
from supervisor.model.rule import READ_ONLY_SET, CommandPattern, Effect, Rule, TierRules

# Asked for at every rule or command, and an enum is slow to look up in.
_ALLOW: Final = Effect.ALLOW
_WRAPPER: Final = Role.WRAPPER
_HARMLESS_TARGETS: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"})
_FULL_OF_COMMANDS: Final = "--kubeconfig"  # such a file may name a program that hands out credentials
_CONNECTIONS: Final = ("/dev/tcp/", "/dev/udp/")
_STATEMENT: Final = Finding(effect=Effect.ALLOW, rule=f"{READ_ONLY_SET}: assignment", sentence="", read_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What judging one command needs to know of the text around it.

    ``function`` is a name that the text itself gives a meaning, ``decodes`` says that values in it may be decoded.
    """

    rules: TierRules
    area: Shut
    function: str | None
    decodes: bool


def judge_command(command: Command, before: Command | None, text: Text) -> list[Finding]:
    """Every finding about one command; ``before`` is the one before it in the text."""
    rules, name = text.rules, command.name
    findings: list[Finding] = []
    for redirect in command.redirects:
        findings += _redirect(redirect, command, rules, text.area)
    # Nothing steers most commands, which is soon seen.
    if command.assignments or name == "ssh" or name in rules.steering:
        steering = _steered_by(command, rules)
        if steering is not None:
            findings.append(by_default(rules.default, command_text(command), steering))
    if not name or (name == text.function and in_the_same_shell(command)):
        findings.append(_STATEMENT)
    elif command.role is not _WRAPPER:
        findings.append(_by_rules(command, before, text))
    return findings


def _steered_by(command: Command, rules: TierRules) -> str | None:
    """Says what decides beside the rules which code runs, if something does."""
    names = rules.steering.get(command.name, frozenset())
    if _FULL_OF_COMMANDS in names and (unknown := _unknown_option(command, rules)) is not None:
        return f"{unknown} may be an option, which can change what the program runs: write it after `--`."
    steering = _steering(command, names, rules)
    return None if steering is None else f"{steering} can change what the program runs, or where."


def _steering(command: Command, names: frozenset[str], rules: TierRules) -> str | None:
    """A variable, or an option that names a file or server."""
    if command.assignments:
        steering = steering_assignments(command)
        if steering:
            return steering[0]
    if command.name == "ssh":
        return doubtful_setting(command)
    if not names or not _may_forbid(names, command):
        return None
    given = arguments_of(command, rules.options.get(command.name, {}))
    return next((one.name for one in given.options if _forbids(names, one.name)), None)


def _unknown_option(command: Command, rules: TierRules) -> str | None:
    """A value that may turn out to be an option which names a file, where the text itself can be that file."""
    if "xargs" in command.via and not any(word.text.startswith("<(") for word in command.argv):
        return None  # its standard input is empty
    words = arguments_of(command, rules.options.get(command.name, {})).words
    return next((one.word.text for one in words if one.word.maybe_option and not one.shielded), None)


def _may_forbid(names: frozenset[str], command: Command) -> bool:
    """Whether one of these options may be set; to be certain takes telling options from their values."""
    for option in command.options:
        for written in option.names:
            if _forbids(names, written):
                return True
    return False


@lru_cache(maxsize=2048)
def _forbids(names: frozenset[str], written: str) -> bool:
    return written in names or (len(written) > 3 and any(name.startswith(written) for name in names))


def _by_rules(command: Command, before: Command | None, text: Text) -> Finding:
    candidates = text.rules.for_program(command.name)
    options = text.rules.options.get(command.name, {})
    standing = text.area.standing
    texts: list[str] | None = None
    patterned = False
    for rule in candidates:
        pattern = rule.pattern
        if not isinstance(pattern, CommandPattern):
            continue
        if rule.effect is not _ALLOW:
            if texts is None:
                texts = [word.text.lower() for word in command.words]
                patterned = is_patterned("".join(texts))
            if (patterned or not rules_out(pattern, texts)) and generously(pattern, command, standing):
                return by_rule(rule, command_text(command))
        elif strictly(pattern, command, before, options, standing):
            if text.decodes and reads_unknown_files(command):
                why = "A decoded value may hide what it names: write it out."
                return by_default(text.rules.default, command_text(command), why)
            return by_rule(rule, "")
    return by_default(text.rules.default, command_text(command), _why_not(command, candidates))


def _why_not(command: Command, candidates: tuple[Rule, ...]) -> str:
    allowed = examples(candidates, command.name)
    if not allowed:
        return f"No rule of this tier allows {shown(command.name)}."
    if not command.standard_path:
        return f"{shown(command.path)} is not where {shown(command.name)} is installed."
    unknown = next((word for word in command.argv[1:] if not word.static), None)
    if unknown is not None:
        return (
            f"What `{shown(unknown.text)}` will be is not known beforehand: write values out, or put -- before them if"
            f" the program takes that. Allowed: {allowed}."
        )
    return f"Allowed with {command.name}: {allowed}."


def _redirect(redirect: Redirect, command: Command, rules: TierRules, area: Shut) -> Iterator[Finding]:
    target = redirect.target
    if target.text.startswith(_CONNECTIONS) and redirect.operator[:2] != "<<":
        host = target.text.split("/")[3]
        if redirect.writes or not target.static or metadata_host(host):
            why = "It opens a connection: test a port with `nc -z HOST PORT`."
            yield by_default(rules.default, command_text(command), why)
    elif _goes_somewhere(redirect):
        yield _write(redirect, command, rules, area)


def _goes_somewhere(redirect: Redirect) -> bool:
    target = redirect.target
    return redirect.writes and not (target.static and target.text in _HARMLESS_TARGETS)


def _write(redirect: Redirect, command: Command, rules: TierRules, area: Shut) -> Finding:
    what = command_text(command)
    path = certain_path(redirect.target, area.standing) if redirect.target.static else None
    on_redirect = [rule for rule, paths in rules.on_redirects if _concerns(rule, paths, path, area)]
    for effect in (Effect.DENY, Effect.APPROVE, Effect.ALLOW):
        for rule in on_redirect:
            if rule.effect is effect:
                return by_rule(rule, what)
    return by_default(rules.default, what, f"It writes to {shown(redirect.target.text)}; read without writing.")


def _concerns(rule: Rule, paths: tuple[str, ...], path: str | None, area: Shut) -> bool:
    if path is None:
        return rule.effect is not Effect.ALLOW
    return fits(path, paths, area.standing)
