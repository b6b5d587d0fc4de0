"""How full a conversation is. Pure. Called from climb.run and decide.continuity."""

from collections.abc import Callable

from supervisor.model.events import Transcript

# How many tokens fit into the model of this name, as the operator has it on file.
WindowOf = Callable[[str], int | None]


def context_left_behind(transcript: Transcript) -> int | None:
    """The size of the conversation a run leaves behind: its last main-loop call, all it read plus what it put out.

    The result's usage adds up every call, so it would count the same context once a turn; and fresh input alone is near
    zero when the cache is warm.
    """
    main = [call for call in transcript.calls if call.main_loop]
    if not main:
        return None
    last = main[-1]
    result = transcript.result
    if not last.final and len(main) == 1 and result is not None and result.usage is not None:
        return last.tokens.read + result.usage.output
    return last.tokens.total


def first_call(transcript: Transcript) -> int | None:
    """What the first main-loop call had to read: the fixed part, the prompt and, when resumed, all before it."""
    return next((call.tokens.read for call in transcript.calls if call.main_loop), None)


def window(transcript: Transcript, model: str, configured: WindowOf) -> int | None:
    """The window of the run's own model: as the CLI reports it, else as configured for it, else for what it was asked.

    ``model`` is the name the CLI was given, which may be an alias: only the CLI knows which model that means.
    """
    model_id = transcript.init.model if transcript.init else None
    if model_id is None:
        return configured(model)
    usage = transcript.result.model_usage.get(model_id) if transcript.result else None
    return (usage.context_window if usage else None) or configured(model_id) or configured(model)


def over(tokens: int | None, limit_window: int | None, threshold: float) -> bool:
    """Whether a conversation is too large to be resumed under a window. What is not known counts as too large."""
    if tokens is None or not limit_window:
        return True
    return tokens / limit_window > threshold
