"""`opsladder doctor`: would a cycle work, and if not, what is the remedy. Changes nothing. Called from ``app``."""

import asyncio
import datetime as dt
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from supervisor.claude.probe import find_binary, probe
from supervisor.cli import words
from supervisor.cli.doctor_guard import SWITCH, rules, waiting
from supervisor.cli.doctor_service import existing, guard_trial, standing
from supervisor.cli.exits import FAILED, SETTLED
from supervisor.cli.findings import Finding, Grade, attempt, ok, problem
from supervisor.cli.show import existing_store
from supervisor.climb.trial import try_prompts
from supervisor.errors import ConfigError, OpsladderError
from supervisor.model.runtime import Runtime
from supervisor.rehearsal.measure import FixedSize, measure_fixed_sizes
from supervisor.settings import Settings, settings_from_process

_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUD = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
_ESCALATION_TOKENS = 500
_BYTES_PER_TOKEN = 4


def examine(config: Path | None, *, as_json: bool) -> int:
    """Look at everything, print it, and say whether a cycle would fail."""
    findings = asyncio.run(_all(config))
    failed = any(f.grade is Grade.PROBLEM for f in findings)
    if as_json:
        print(json.dumps({"schema": "opsladder.doctor/1", "ok": not failed, "findings": [asdict(f) for f in findings]}))
    else:
        _print(findings)
        print(f"\n{_verdict(findings, failed=failed)}")
    return FAILED if failed else SETTLED


def _verdict(findings: list[Finding], *, failed: bool) -> str:
    if failed:
        return "A cycle would fail."
    paused = any(f.check == SWITCH for f in findings)
    return "A cycle would be skipped, because opsladder is paused." if paused else "A cycle would run."


_SIGNS = {Grade.OK: "ok ", Grade.WARNING: "!  ", Grade.PROBLEM: "NO "}


def _print(findings: list[Finding]) -> None:
    from rich.text import Text

    from supervisor.cli.screen import Screen

    screen = Screen()
    for finding in findings:
        head = f"{_SIGNS[finding.grade]} {finding.check:<11} "
        screen.hang_whole(Text(head), words.harmless(finding.detail))
        if finding.remedy:
            screen.hang_whole(Text("→ ".rjust(len(head))), words.harmless(finding.remedy))


async def _all(config: Path | None) -> list[Finding]:
    try:
        settings = settings_from_process(config)
    except ConfigError as error:
        remedy = error.remedy or "Correct it; `opsladder init` writes a configuration that works."
        return [Finding(check="config", grade=Grade.PROBLEM, detail=error.message, remedy=remedy)]
    findings = [ok("config", str(settings.source) if settings.source else "none found: every setting has its default")]
    runtime: Runtime | None = None
    try:
        binary = find_binary(
            settings.claude.bin, path_var=settings.agent_env.get("PATH", ""), base_dir=settings.base_dir
        )
        runtime = await probe(binary, cache_file=None, env=settings.agent_env)
        findings.append(_claude(runtime))
    except OpsladderError as error:
        findings.append(problem("claude", error))
    findings.append(_credentials(settings))
    findings.append(attempt("prompts", lambda: _prompts(settings)))
    findings.append(attempt("rules", lambda: rules(settings)))
    database = attempt("database", lambda: _database(settings))
    findings += [database, _state(settings.state.dir)]
    place = _work(settings.claude.work_dir)
    findings += [place, _schedules(settings)]
    if database.grade is Grade.OK:
        findings += waiting(settings)
        findings += standing(settings)
    if runtime is not None and place.grade is not Grade.PROBLEM:
        findings.append(await _fixed_size(settings, runtime))
        findings.append(await guard_trial(settings))
    return findings


def _claude(runtime: Runtime) -> Finding:
    abilities = asdict(runtime.abilities)
    lacking = [name for name, there in abilities.items() if not there]
    detail = f"{runtime.version} at {runtime.path}"
    if not runtime.abilities.resume:
        return Finding(
            check="claude",
            grade=Grade.WARNING,
            detail=f"{detail} cannot resume sessions",
            remedy="Every tier will start from a handoff. Use a CLI that has --resume.",
        )
    if not runtime.abilities.tools:
        return Finding(
            check="claude",
            grade=Grade.WARNING,
            detail=f"{detail} cannot restrict its tools",
            remedy="Use a newer CLI: every tier would see every tool.",
        )
    return ok("claude", detail + (f", without {', '.join(lacking)}" if lacking else ", with all abilities"))


def _credentials(settings: Settings) -> Finding:
    env = settings.agent_env
    named = [name for name in (*_CREDENTIALS, *_CLOUD) if env.get(name)]
    if named:
        return ok("credentials", f"{', '.join(named)} set")
    base = env.get("CLAUDE_CONFIG_DIR") or str(Path(env.get("HOME", "/")) / ".claude")
    if os.access(Path(base) / ".credentials.json", os.R_OK):
        return ok("credentials", f"a login is stored in {base}")
    return Finding(
        check="credentials",
        grade=Grade.PROBLEM,
        detail="no API key and no stored login",
        remedy="Set ANTHROPIC_API_KEY, or log in once with the CLI as the user that runs opsladder.",
    )


def _prompts(settings: Settings) -> Finding:
    longest = try_prompts(settings)
    if longest > _ESCALATION_TOKENS * _BYTES_PER_TOKEN:
        return Finding(
            check="prompts",
            grade=Grade.WARNING,
            detail=f"an escalation prompt is about {longest // _BYTES_PER_TOKEN} tokens long",
            remedy=f"Keep it under {_ESCALATION_TOKENS}: the conversation above it holds the findings.",
        )
    return ok("prompts", f"all render, from {settings.prompts_dir}")


def _database(settings: Settings) -> Finding:
    from supervisor.store import check

    url = settings.database_url()
    state = check(url)
    shut = _not_writable(url)
    if shut is not None:
        return Finding(
            check="database",
            grade=Grade.PROBLEM,
            detail=f"{shut} is not writable",
            remedy="Make the database and its directory writable for the user that runs opsladder.",
        )
    if state.ok:
        return ok("database", state.detail)
    if state.current == state.head:
        return Finding(
            check="database",
            grade=Grade.PROBLEM,
            detail=state.detail,
            remedy="Something else has changed its tables: restore it from a backup.",
        )
    if url.startswith("sqlite") and (state.current is None or state.current < state.head):
        how = "is not there yet" if state.current is None else f"has schema {state.current}"
        return ok("database", f"{url.partition('///')[2]} {how}; the next cycle brings it to {state.head}")
    # It refuses, and unlike the check gives the remedy apart.
    existing_store(settings)
    return ok("database", "brought up to date meanwhile")


def _not_writable(url: str) -> Path | None:
    """What of a SQLite database this user cannot write to; that keeps also those from it who only read."""
    scheme, _, name = url.partition("///")
    file = Path(name.partition("?")[0])
    if scheme != "sqlite:" or not file.exists():
        return None
    beside = [file.with_name(file.name + part) for part in ("-wal", "-shm")]
    return next((p for p in (file.parent, file, *beside) if p.exists() and not os.access(p, os.W_OK)), None)


def _state(path: Path) -> Finding:
    there = existing(path)
    if not there.is_dir():
        detail = f"{there} is not a directory" + ("" if there == path else f", so {path} cannot be made")
    elif not os.access(there, os.W_OK | os.X_OK):
        detail = f"{there} is not writable" + ("" if there == path else f", so {path} cannot be made")
    else:
        return ok("state", f"{path}" + ("" if there == path else " (will be created)"))
    remedy = "Set state.dir to a directory of the user that runs opsladder, or correct its owner."
    return Finding(check="state", grade=Grade.PROBLEM, detail=detail, remedy=remedy)


def _work(path: Path) -> Finding:
    if existing(path) != path or not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
        return Finding(
            check="work",
            grade=Grade.PROBLEM,
            detail=f"{path} is not a directory that this user can enter",
            remedy="Set claude.work_dir to the directory the agents work in. The service's own is made when it starts.",
        )
    if not os.access(path, os.W_OK):
        return Finding(
            check="work",
            grade=Grade.WARNING,
            detail=f"{path} is not writable",
            remedy="Agents can look from there, but not write there. Set claude.work_dir if they have to.",
        )
    return ok("work", str(path))


def _schedules(settings: Settings) -> Finding:
    def when(cron: str | None, every: dt.timedelta | None) -> str:
        return f"cron {cron}" if cron else words.every(every) if every else "by hand"

    return ok("schedules", ", ".join(f"{s.name}: {when(s.cron, s.every)}" for s in settings.schedules))


async def _fixed_size(settings: Settings, runtime: Runtime) -> Finding:
    with tempfile.TemporaryDirectory(prefix="opsladder-doctor-") as name:
        try:
            sizes = await measure_fixed_sizes(settings, runtime, directory=Path(name))
        except OpsladderError as error:
            return problem("call size", error)
    return ok("call size", "fixed part of an API call: " + ", ".join(_size(s) for s in sizes))


def _size(size: FixedSize) -> str:
    return f"tier {size.tier} {size.bytes / 1000:.1f} kB"
