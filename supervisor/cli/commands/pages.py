"""What stands below the options on the help page of each command. No I/O. Loaded only when such a page is printed.

Every example is parsed against its command by the tests, so one with an option that is gone fails them.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Examples with what each is for, exit codes where 0, 1 and 2 are not the whole story, and related commands.

    ``notes`` are headings with a text each.
    """

    examples: tuple[tuple[str, str], ...]
    exits: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


_USAGE: Final = ("2", "The command line or the configuration is wrong; nothing was done.")
_OF_CYCLES: Final = (
    ("3", "The cycle needs a person: unresolved, escalation blocked, no valid report."),
    ("4", "The cycle is paused: by an approval, a budget, a usage limit, the switch, or interrupted."),
    ("5", "The cycle was skipped: already running, an earlier one is paused, or switched off."),
)
_AS_A_CYCLE: Final = (
    ("0", "The cycle is settled: healthy or resolved."),
    ("1", "The supervisor or a run failed, or the cycle was stopped."),
    _USAGE,
    *_OF_CYCLES,
)
_AS_ITS_CYCLE: Final = (
    ("0", "The cycle is settled; or its run has waited elsewhere for this answer, and goes on there."),
    ("1", "Failed or stopped; or the approval is unknown, was answered before, or waited too long."),
    _USAGE,
    *_OF_CYCLES[:-1],
    ("5", "Switched off: the answer is kept until `opsladder unpause`; or somebody else goes on with the cycle."),
)

PAGES: Final = {
    "": Page(
        examples=(
            ("opsladder demo", "See what it does: no key, no configuration, no cost."),
            ("opsladder init && opsladder doctor", "Begin: a configuration to edit, then what is still missing."),
            ("opsladder cycle --dry-run", "Look at what there is, change nothing."),
            ("opsladder chains --limit 5", "What happened lately."),
        ),
        exits=(
            ("0", "Done. What runs a cycle (cycle, rehearse, demo, retry, approve, deny): it is healthy or resolved."),
            ("1", "Failed. What checks something (doctor, db check, notify test): it is not well."),
            _USAGE,
            *_OF_CYCLES,
        ),
        notes=(
            (
                "Configuration",
                "The file that --config FILE names, after the command; else $OPSLADDER_CONFIG; else the first there is "
                "of ./opsladder.toml, ~/.config/opsladder/opsladder.toml and /etc/opsladder/opsladder.toml; else every "
                "setting has its default. The environment wins over the file: OPSLADDER_<SECTION>__<KEY>, such as "
                "OPSLADDER_STATE__DIR or OPSLADDER_ESCALATION__MAX_TIER; for secrets also a file that holds them, as "
                "OPSLADDER_WEB__TOKEN_FILE; a table as in the file, as OPSLADDER_CLAUDE__ENV='{ A = \"b\" }'.",
            ),
            (
                "Output",
                "Results are on standard output, logs and errors on standard error. With --json, standard output is "
                "one JSON document. There is no colour in a pipe or with NO_COLOR set, and never as the only sign.",
            ),
        ),
    ),
    "init": Page(
        examples=(
            ("opsladder init", "Here, to try things out: commands find ./opsladder.toml by themselves."),
            (
                "sudo opsladder init /etc/opsladder",
                "For the whole machine, where the units of systemd look for it, with records in /var/lib/opsladder.",
            ),
            (
                "opsladder init --config /srv/ops/ladder.toml",
                "Under another name, with models.toml, environment.md and prompts beside it.",
            ),
            (
                "opsladder init ladder && rm -r ladder/prompts",
                "Without prompts of your own: shipped ones are used.",
            ),
        ),
        also=("doctor", "rehearse"),
    ),
    "doctor": Page(
        examples=(
            ("opsladder doctor", "After each change of the configuration, and when a cycle fails."),
            ("sudo opsladder doctor --config /etc/opsladder/opsladder.toml", "The configuration of the service."),
            ("opsladder doctor --json | jq '.findings[] | select(.grade != \"ok\")'", "For a check that alerts."),
        ),
        exits=(
            ("0", "A cycle would run; there may be warnings."),
            ("1", "A cycle would fail, also because the configuration is wrong."),
            ("2", "The command line is wrong."),
        ),
        also=("init", "notify test", "db check", "rehearse"),
    ),
    "demo": Page(
        examples=(
            ("opsladder demo", "Three tiers, one conversation, in a few seconds."),
            ("opsladder demo --verbose", "With every decision as a line on standard error."),
            ("opsladder demo --config opsladder.toml", "On the Claude CLI of your configuration."),
            ("OPSLADDER_CLAUDE__BIN=/opt/claude/claude opsladder demo", "On another Claude CLI, to see that it works."),
        ),
        exits=_AS_A_CYCLE,
        also=("rehearse", "init"),
    ),
    "rehearse": Page(
        examples=(
            ("opsladder rehearse demo", "A broken web service on your ladder: which calls do your rules let through?"),
            (
                "opsladder rehearse endless",
                "A model that never stops: when do your limits end it? Can take minutes.",
            ),
            ("opsladder rehearse outage.toml --dry-run", "Your own scenario; nothing but reading is let through."),
        ),
        exits=_AS_A_CYCLE,
        also=("demo", "doctor", "cycle"),
    ),
    "cycle": Page(
        examples=(
            ("opsladder cycle", "One cycle of the first schedule, shown as it climbs."),
            ("opsladder cycle --dry-run", "Look, and change nothing. Exit code 3 if a higher tier would have run."),
            ("opsladder cycle nightly --prompt 'the certificate was renewed today'", "Tell tier 1 what you know."),
            (
                "*/15 * * * *  opsladder cycle --config /etc/opsladder/opsladder.toml",
                "A line for crontab: while a cycle still runs, the next one exits with 5.",
            ),
        ),
        exits=_AS_A_CYCLE,
        also=("run", "chains", "approvals", "retry", "rehearse"),
    ),
    "run": Page(
        examples=(
            ("opsladder run", "In the foreground, to try it; Ctrl-C ends it in an orderly way."),
            ("opsladder run --config /etc/opsladder/opsladder.toml", "What the unit of systemd starts."),
            ("OPSLADDER_WEB__PORT=9100 opsladder run", "With metrics on another port, for this once."),
        ),
        exits=(
            ("0", "Ended by a signal, and all that ran is on record."),
            ("1", "It cannot serve: another one does, or the database or the port cannot be used."),
            _USAGE,
        ),
        also=("systemd install", "schedules", "cycle", "pause"),
    ),
    "retry": Page(
        examples=(
            ("opsladder retry 18", "The tier of record 18 once more, with all that it knew."),
            ("opsladder retry 18 --fresh-session", "The same with a clean conversation and a handoff in writing."),
        ),
        exits=_AS_A_CYCLE,
        also=("chain", "stop", "reset"),
    ),
    "stop": Page(
        examples=(
            ("opsladder stop 18", "End what record 18 is doing, at once."),
            ("opsladder chains --status running", "Find the number: the column records."),
        ),
        exits=(
            ("0", "It is over, and on record as stopped."),
            ("1", "It was over already, there is no such record, or it could not be stopped in time."),
            _USAGE,
        ),
        also=("pause", "retry", "chains"),
    ),
    "chains": Page(
        examples=(
            ("opsladder chains", "The last twenty cycles."),
            ("opsladder chains --status unresolved --limit 5", "What was left to a person."),
            ("opsladder chains --json | jq '.chains[].total.cost_usd'", "For scripts: one document for each chain."),
        ),
        also=("chain", "session", "incidents", "cost"),
    ),
    "chain": Page(
        examples=(
            ("opsladder chain 18", "The chain that record 18 is part of."),
            ("opsladder chain --cycle 42", "The chain of cycle 42."),
            ("opsladder chain 18 --json | jq '.sessions[].reason'", "Why each run resumed, or could not."),
        ),
        also=("chains", "session", "retry"),
    ),
    "session": Page(
        examples=(
            ("opsladder session 18", "What was said and done in record 18."),
            ("opsladder session 18 --follow", "Watch it while it runs, also one of the service."),
            ("opsladder session 18 --json | jq '.history'", "Each change of its status: when, why and by whom."),
        ),
        also=("chain", "stop"),
    ),
    "incidents": Page(
        examples=(
            ("opsladder incidents --status open", "What is wrong now, and since when."),
            ("opsladder incidents --limit 100 --json", "For a report: each with its cycles and its cost."),
        ),
        also=("incident", "services", "reset"),
    ),
    "incident": Page(
        examples=(
            ("opsladder incident 3", "All about incident 3, the oldest cycle first."),
            ("opsladder incident 3 --json", "The same with all fields."),
        ),
        also=("incidents", "reset", "chain"),
    ),
    "reset": Page(
        examples=(
            ("opsladder reset", "Everything kept: the next cycle of every schedule starts afresh."),
            ("opsladder reset nightly", "What is kept for the schedule nightly."),
            ("opsladder reset --incident 3", "What is kept for incident 3."),
        ),
        also=("incident", "cycle", "retry"),
    ),
    "schedules": Page(
        examples=(
            ("opsladder schedules", "Is it on time?"),
            ("opsladder schedules --json | jq '.schedules[] | select(.missed > 0)'", "Those that missed firings."),
        ),
        also=("run", "cycle", "chains"),
    ),
    "cost": Page(
        examples=(
            ("opsladder cost --since 7d", "The last seven days, by tier."),
            ("opsladder cost --since 2026-11-01 --by day", "Each day since the first of November."),
            ("opsladder cost --by schedule --json", "Everything ever spent on each schedule, for a script."),
        ),
        also=("chains", "metrics"),
    ),
    "metrics": Page(
        examples=(
            ("opsladder metrics", "What a scrape would get."),
            (
                "opsladder metrics --textfile /var/lib/prometheus/node-exporter/ops.prom",
                "From cron, for the textfile collector of node_exporter.",
            ),
        ),
        also=("run", "cost"),
    ),
    "services": Page(
        examples=(
            ("opsladder services", "Which services are down, and which may not be restarted for now."),
            ("opsladder services --json | jq '.services[].name'", "All that was ever reported or acted on."),
        ),
        also=("incidents", "chains"),
    ),
    "approvals": Page(
        examples=(
            ("opsladder approvals", "Is anything asked of me?"),
            ("opsladder approvals --json | jq '.approvals | length'", "How many wait, for a prompt or a check."),
        ),
        also=("approve", "deny", "session"),
    ),
    "approve": Page(
        examples=(
            ("opsladder approve 7", "Yes to approval 7; its cycle goes on in this terminal."),
            ("opsladder approve 7 --json", "From a script: the whole chain once it is over."),
        ),
        exits=_AS_ITS_CYCLE,
        also=("approvals", "deny"),
    ),
    "deny": Page(
        examples=(
            ("opsladder deny 7 --reason 'not during business hours'", "No, and why: the model reads it."),
            ("opsladder deny 7", "No."),
        ),
        exits=_AS_ITS_CYCLE,
        also=("approvals", "approve", "stop"),
    ),
    "pause": Page(
        examples=(
            ("opsladder pause --reason 'the database moves'", "Before maintenance, or when in doubt."),
            ("sudo opsladder pause --config /etc/opsladder/opsladder.toml", "The switch of the service."),
        ),
        also=("unpause", "stop", "doctor"),
    ),
    "unpause": Page(
        examples=(("opsladder unpause", "Runs and tool calls go through again."),),
        also=("pause", "cycle"),
    ),
    "sweep": Page(
        examples=(
            ("opsladder sweep", "Now, and say what was done."),
            ("*/5 * * * *  opsladder sweep", "A line for crontab, where no service runs."),
        ),
        also=("backup", "run"),
    ),
    "backup": Page(
        examples=(
            ("opsladder backup /var/backups/opsladder.gz", "Before an upgrade."),
            ('opsladder backup "records-$(date +%F).gz"', "With the date in its name."),
        ),
        exits=(
            ("0", "Written, and found to be whole."),
            ("1", "There is no backup: FILE cannot be written, or the database cannot be used."),
            ("2", "FILE is there already, or the command line or the configuration is wrong."),
        ),
        also=("restore", "sweep"),
    ),
    "restore": Page(
        examples=(
            ("opsladder restore /var/backups/opsladder.gz", "Into the configured database, which is empty."),
            (
                "OPSLADDER_STATE__DATABASE_URL_FILE=db.url opsladder restore all.gz",
                "From SQLite to PostgreSQL, whose address is in the file db.url.",
            ),
        ),
        exits=(
            ("0", "Everything is there, and the same as in FILE."),
            ("1", "Nothing was put in: FILE is damaged, or the database has records or cannot be used."),
            _USAGE,
        ),
        also=("backup", "db check"),
    ),
    "db": Page(
        examples=(
            ("opsladder db check", "Does the database fit this version?"),
            ("opsladder db upgrade", "Make it fit."),
        ),
        also=("backup", "doctor"),
    ),
    "db upgrade": Page(
        examples=(
            ("opsladder db upgrade", "After an upgrade of opsladder, or to set PostgreSQL up."),
            ("opsladder db upgrade --config staging.toml", "The database of another configuration first."),
        ),
        also=("db check", "backup"),
    ),
    "db check": Page(
        examples=(
            ("opsladder db check", "Does the database fit this version?"),
            ("opsladder db check || opsladder db upgrade", "In a deployment: only where it is needed."),
        ),
        exits=(
            ("0", "It is up to date."),
            ("1", "It is not, or it cannot be used."),
            _USAGE,
        ),
        also=("db upgrade", "doctor"),
    ),
    "notify": Page(
        examples=(
            ("opsladder notify test --level critical", "Would the pager ring?"),
            ("opsladder notify list", "What was told, and what did not arrive?"),
        ),
        also=("doctor",),
    ),
    "notify test": Page(
        examples=(
            ("opsladder notify test", "To the targets of warning."),
            ("opsladder notify test --level critical", "Would the pager ring?"),
        ),
        exits=(
            ("0", "Every target was reached."),
            ("1", "One was not; its line says why."),
            ("2", "Nobody is told of this level, or the command line or the configuration is wrong."),
        ),
        also=("notify list", "doctor"),
    ),
    "notify list": Page(
        examples=(
            ("opsladder notify list --limit 5", "What people were told lately."),
            (
                "opsladder notify list --json | jq '.deliveries[] | select(.missed != [])'",
                "What did not arrive everywhere.",
            ),
        ),
        also=("notify test", "chains"),
    ),
    "systemd": Page(
        examples=(("opsladder systemd install --dry-run", "See the units of this version."),),
        also=("run", "cycle"),
    ),
    "systemd install": Page(
        examples=(
            ("opsladder systemd install --dry-run", "See what would be written, and where."),
            ("sudo opsladder systemd install", "For the machine; then what it says comes next."),
            ("opsladder systemd install --user", "For yourself, without root."),
            (
                "sudo opsladder systemd install --config /srv/ops/ladder.toml",
                "With another configuration than the usual.",
            ),
        ),
        also=("run", "cycle", "sweep", "doctor"),
    ),
}
