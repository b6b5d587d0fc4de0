"""`opsladder demo` and `opsladder rehearse`: the ladder on the real CLI with a scripted model. Called from ``app``."""

import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from supervisor.cli import logs
from supervisor.cli.cycle import CycleOptions, climb_once, show_while
from supervisor.cli.exits import exit_code
from supervisor.errors import ConfigError
from supervisor.model.cycle import Chain, Trigger
from supervisor.model.progress import CycleEnded, Watch
from supervisor.rehearsal.demo_site import at_the_demo_site, build_demo_site
from supervisor.rehearsal.scenario import Scenario
from supervisor.rehearsal.scenario_file import builtin_scenarios, find_scenario, load_scenario
from supervisor.rehearsal.stage import cued, stage
from supervisor.settings import Settings, demo_settings, settings_from_process

_NO_COST = "The model is scripted: no key is used and no money is spent.\nCosts are what a real model would bill."


def run_demo(config: Path | None, *, verbose: bool) -> int:
    """A broken web service in a throw-away directory, found by tier 1, not mended by tier 2, mended by tier 3."""
    logs.set_up(verbose=verbose)
    cli = settings_from_process(config).claude.bin if config else None
    with tempfile.TemporaryDirectory(prefix="opsladder-demo-") as name:
        directory = Path(name).resolve()
        site = directory / "site"
        placeholders = build_demo_site(site)
        settings = at_the_demo_site(demo_settings(work_dir=site, directory=directory, cli=cli), site)
        logs.keep_secret(settings.masker())
        scenario = load_scenario(builtin_scenarios()["demo"], placeholders=placeholders)
        print(f"{scenario.title}\n{_NO_COST}")
        print(f"The CLI, the commands and the broken service are real, in\n{site}.\n")
        chain = show_while(
            False, lambda watch: asyncio.run(_climb(settings, scenario, directory, CycleOptions(), Trigger.DEMO, watch))
        )
        print(f"\n$ cat {site / 'run' / 'web.state'}\n{(site / 'run' / 'web.state').read_text().strip()}")
    print("\nThat was `opsladder cycle`: three tiers, one conversation.\nNext: `opsladder init`, `opsladder doctor`.")
    return exit_code(chain.cycle.status)


def run_rehearsal(scenario_name: str, config: Path | None, *, dry_run: bool, as_json: bool, verbose: bool) -> int:
    """The operator's own configuration, prompts and rules against a scenario."""
    logs.set_up(verbose=verbose)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    path = _scenario_file(scenario_name)
    with tempfile.TemporaryDirectory(prefix="opsladder-rehearsal-") as name:
        directory = Path(name).resolve()
        builtin = path in builtin_scenarios().values()
        placeholders = {"dir": str(settings.claude.work_dir)}
        if builtin:
            site = directory / "site"
            placeholders = build_demo_site(site)
            settings = at_the_demo_site(settings, site)
        scenario = load_scenario(path, placeholders=placeholders)
        # With --json, stdout is the document and nothing else.
        print(f"{scenario.title}\n{_NO_COST}\n", file=sys.stderr if as_json else sys.stdout)
        options = CycleOptions(dry_run=dry_run, as_json=as_json)
        chain = show_while(
            as_json, lambda watch: asyncio.run(_climb(settings, scenario, directory, options, Trigger.MANUAL, watch))
        )
    return exit_code(chain.cycle.status)


def _scenario_file(name: str) -> Path:
    try:
        return find_scenario(name)
    except OSError as error:
        raise ConfigError(
            f"The scenario {name} cannot be looked at: {error.strerror}.", remedy="Make it readable for this user."
        ) from error


async def _climb(
    settings: Settings, scenario: Scenario, directory: Path, options: CycleOptions, trigger: Trigger, watch: Watch
) -> Chain:
    async with stage(settings, scenario, directory=directory) as (staged, api):
        return await climb_once(staged, options, trigger, watch=cued(api, _as_rehearsed(watch)))


def _as_rehearsed(watch: Watch) -> Watch:
    """A watcher that knows that nothing goes on from here."""
    return lambda progress: watch(replace(progress, rehearsed=True) if isinstance(progress, CycleEnded) else progress)
