"""What has to be right between settings rather than within one. Pure. Called from ``settings.load``.

Works on the document as it was written, because it has to find its faults beside those of single values.
"""

from collections.abc import Iterator, Mapping

from supervisor.settings.agent_env import reveals
from supervisor.settings.problems import Problem, shown
from supervisor.settings.schema import Document
from supervisor.settings.source import Source


def elements(raw: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """The tables of a list, as far as it is one; a wrong element stands as an empty table."""
    listed = raw.get(key)
    return [e if isinstance(e, dict) else {} for e in listed] if isinstance(listed, list) else []


def check_across(raw: Mapping[str, object], source: Source) -> Iterator[Problem]:
    """Names that are used twice, and settings that exclude each other."""
    for key in ("tiers", "schedules"):
        seen: dict[object, int] = {}
        for index, element in enumerate(elements(raw, key)):
            name = element.get("name")
            if isinstance(name, str) and seen.setdefault(name, index) != index:
                what = f"is the name of number {seen[name] + 1} already (got {shown(name)})"
                yield source.problem((key, index, "name"), what)
    for index, tier in enumerate(elements(raw, "tiers")):
        if index == 0 and "escalation_prompt" in tier:
            yield source.problem(("tiers", 0, "escalation_prompt"), "nothing escalates to the first tier")
    for index, schedule in enumerate(elements(raw, "schedules")):
        if "cron" in schedule and "every" in schedule:
            yield source.problem(("schedules", index, "every"), "a schedule has cron or every, not both")


def check_secrets(document: Document, source: Source) -> Iterator[Problem]:
    """Secrets of the supervisor that the operator would hand to the agent."""
    for name, value in document.claude.env.items():
        if any(reveals(value, secret) for secret in secrets_of(document)):
            yield source.problem(("claude", "env", name), "holds a secret of the supervisor, which no agent may see")


def secrets_of(document: Document) -> list[str]:
    """What must never reach an agent."""
    notify = document.notify
    told = (*notify.info, *notify.warning, *notify.critical, *(schedule.ping_url for schedule in document.schedules))
    secrets = (document.state.database_url, document.web.token, *told)
    return [secret.get_secret_value() for secret in secrets if secret is not None]
