"""`opsladder cycle`: one cycle now. Called from ``app``; `demo` and `rehearse` share ``climb_once``.

The first CLI is started before the store and everything above it is imported: it boots on another core meanwhile, and
does nothing until its record is written and its prompt sent.
"""

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.claude.probe import cached_runtime, find_binary, probe
from supervisor.cli import logs
from supervisor.cli.exits import exit_code
from supervisor.climb.launch import Launched, launch, new_session_id
from supervisor.climb.stop import StopRequest
from supervisor.errors import ClaudeNotUsable, OpsladderError, UsageError
from supervisor.model.cycle import Chain, Trigger
from supervisor.model.progress import Watch
from supervisor.model.runtime import Runtime
from supervisor.settings import Settings, settings_from_process


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOptions:
    """What the command line asks for.

    ``paused_cycle`` is one to go on with, instead of beginning another; ``retry_of`` a session record to do again.
    """

    schedule: str | None = None
    dry_run: bool = False
    max_tier: int | None = None
    start_tier: int = 1
    prompt: str = ""
    fresh_session: bool = False
    approve_budget: bool = False
    paused_cycle: int | None = None
    retry_of: int | None = None
    by: str | None = None
    as_json: bool = False
    verbose: bool = False


def run_one(config: Path | None, options: CycleOptions) -> int:
    """Run the cycle, show it, and say how it ended."""
    logs.set_up(verbose=options.verbose)
    settings = settings_from_process(config)
    logs.keep_secret(settings.masker())
    chain = show_while(options.as_json, lambda watch: asyncio.run(climb_once(settings, options, watch=watch)))
    return exit_code(chain.cycle.status)


def show_while(as_json: bool, work: "Climb") -> Chain:
    """Do the work with someone watching, and print the document at the end where that was asked for."""
    if as_json:
        from supervisor.model.document import chain_document

        chain = work(lambda _: None)
        with suppress(BrokenPipeError):
            # Whoever stopped reading still gets the cycle's own exit code.
            print(json.dumps(chain_document(chain)), flush=True)
        return chain
    with watcher() as watch:
        return work(watch)


@contextmanager
def watcher() -> Iterator[Watch]:
    """A live tree on a terminal, plain lines elsewhere."""
    if sys.stdout.isatty():
        from supervisor.cli.live import live_tree

        with live_tree() as watch:
            yield watch
    else:
        from supervisor.cli.plain import PlainLines

        yield PlainLines()


async def climb_once(
    settings: Settings, options: CycleOptions, trigger: Trigger = Trigger.MANUAL, *, watch: Watch
) -> Chain:
    """Start the first CLI, load the rest, climb."""
    schedule = _check(settings, options)
    dry_run = options.dry_run or settings.escalation.dry_run
    prepare_state(settings)
    stop = StopRequest()
    with _signals_ask(stop):
        runtime = await find_runtime(settings)
        beginning = options.paused_cycle is None and options.retry_of is None
        warm = await _boot_ahead(settings, runtime, options.start_tier, dry_run) if beginning else None
        try:
            from supervisor.climb.cycle import run_cycle
            from supervisor.climb.ladder import CycleRequest

            settings.check_rules()
            ladder = make_ladder(settings, runtime, watch)
            request = CycleRequest(
                schedule=schedule,
                trigger=trigger,
                dry_run=dry_run,
                max_tier=settings.escalation.max_tier if options.max_tier is None else options.max_tier,
                start_tier=options.start_tier,
                instructions=options.prompt,
                force_fresh=options.fresh_session,
                approve_budget=options.approve_budget,
                paused_cycle=options.paused_cycle,
                retry_of=options.retry_of,
                by=options.by,
            )
            return await run_cycle(ladder, request, warm=warm, stop=stop)
        finally:
            if warm is not None:
                await warm.end(settings.claude.end_grace_seconds)


def make_ladder(settings: Settings, runtime: Runtime, watch: Watch) -> "Ladder":
    """The tools of a climb, with the store open."""
    from supervisor.climb.ladder import Ladder
    from supervisor.prompts import Prompts
    from supervisor.store import open_store

    return Ladder(
        settings=settings,
        store=open_store(settings.database_url()),
        runtime=runtime,
        prompts=Prompts(settings.prompt_dirs),
        watch=watch,
    )


def prepare_state(settings: Settings) -> None:
    """Make the state directory, private, and prove that it can be written to before anything starts."""
    directory = settings.state.dir
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as trial:
            trial.write(b"\n")
    except OSError as error:
        raise OpsladderError(
            f"The state directory {directory} cannot be written to: {error.strerror}.",
            remedy="Set state.dir, make room, or correct its owner.",
        ) from error


async def find_runtime(settings: Settings) -> Runtime:
    """The CLI a cycle will use, and what it can do."""
    binary = find_binary(settings.claude.bin, path_var=settings.agent_env.get("PATH", ""), base_dir=settings.base_dir)
    cache_file = settings.state.dir / "probe.json"
    return cached_runtime(binary, cache_file) or await probe(binary, cache_file=cache_file, env=settings.agent_env)


async def _boot_ahead(settings: Settings, runtime: Runtime, tier: int, dry_run: bool) -> Launched | None:
    try:
        return await launch(
            settings, runtime, tier=tier, session_id=new_session_id(), resume_session_id=None, dry_run=dry_run
        )
    except (ClaudeNotUsable, OSError):
        # The run itself will try again, and record why it could not.
        return None


def _check(settings: Settings, options: CycleOptions) -> str:
    names = [s.name for s in settings.schedules]
    if options.schedule is not None and options.schedule not in names:
        raise UsageError(f"There is no schedule named {options.schedule!r}.", remedy=f"There is: {', '.join(names)}.")
    if options.start_tier > len(settings.tiers):
        raise UsageError(f"There is no tier {options.start_tier}: the ladder has {len(settings.tiers)}.")
    return options.schedule or names[0]


@contextmanager
def _signals_ask(stop: StopRequest) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the cycle to stop; it ends its processes, records, and returns."""
    loop = asyncio.get_running_loop()
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in wanted:
        loop.add_signal_handler(number, stop.ask)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)


if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.climb.ladder import Ladder

    Climb = Callable[[Watch], Chain]
