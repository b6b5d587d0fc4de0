"""The CLI binary a run uses and what it can do. No I/O. Made by ``claude.probe``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What this binary was seen to offer. ``max_turns`` is tried, not read: new versions hide it from ``--help``."""

    resume: bool
    fork_session: bool
    session_id: bool
    tools: bool
    json_schema: bool
    partial_messages: bool
    system_prompt: bool
    append_system_prompt: bool
    setting_sources: bool
    settings: bool
    strict_mcp_config: bool
    max_budget_usd: bool
    defer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One binary on one host. Two runtimes with one ``id`` may resume each other's sessions."""

    id: str
    host: str
    path: str
    version: str
    abilities: Abilities
