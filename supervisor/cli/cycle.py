"""`opsladder cycle`: one cycle now. Called from ``app``; `demo` and `rehearse` share ``climb_once``.

The first CLI is started before the store and everything above it is imported: it boots on another core meanwhile, and
does nothing until its record is written and its prompt sent.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli import logs
from supervisor.cli.exits import exit_code
from supervisor.climb.launch import Launched, launch, new_session_id
from supervisor.climb.outfit import find_runtime, make_ladder, prepare_state
from supervisor.climb.stop import StopRequest
from supervisor.errors import ClaudeNotUsable, UsageError
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
    return exit_code(climb_and_tell(settings, options).cycle.status)


def climb_and_tell(settings: Settings, options: CycleOptions, trigger: Trigger = Trigger.MANUAL) -> Chain:
    """One cycle with someone watching; whoever has to know of something is told meanwhile, and at its end."""
    tells = settings.tells_anyone

    def climb(watch: Watch) -> Chain:
        return asyncio.run(climb_once(settings, options, trigger, watch=watch, tells=tells))

    chain = show_while(options.as_json, climb)
    if tells:
        from supervisor.notify import deliver_after_cycle
        from supervisor.store import open_store

        with open_store(settings.database_url()) as store:
            deliver_after_cycle(settings, store, chain)
    return chain


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
    settings: Settings, options: CycleOptions, trigger: Trigger = Trigger.MANUAL, *, watch: Watch, tells: bool = False
) -> Chain:
    """Start the first CLI, load the rest, climb. ``tells``: people are told meanwhile, as nobody is of a rehearsal."""
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
            from supervisor.climb.trial import check_prompts

            settings.check_rules()
            check_prompts(settings)
            if tells:
                from supervisor.notify import check_new_targets

                check_new_targets(settings)
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
            async with _telling(settings, ladder) if tells else nullcontext():
                return await run_cycle(ladder, request, warm=warm, stop=stop)
        finally:
            if warm is not None:
                await warm.end(settings.claude.end_grace_seconds)


def _telling(settings: Settings, ladder: "Ladder") -> AbstractAsyncContextManager[None]:
    """Tell people what they have to know while the cycle goes on."""
    from supervisor.notify.meanwhile import telling

    return telling(settings, ladder.store)


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
