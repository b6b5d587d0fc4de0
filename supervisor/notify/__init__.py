"""Tell people what they have to know, through Apprise, and dead-man's switches that all is well. Does I/O.

``deliver`` turns notices on record into messages and sends them, ``targets`` knows who is told, ``sending`` is the only
module that knows Apprise, ``pings`` asks for the URL of a dead-man's switch. Called from service and cli.
"""

from supervisor.notify.deliver import DeliverySummary, deliver_after_cycle, deliver_due
from supervisor.notify.pings import ping, ping_after
from supervisor.notify.targets import check_new_targets, check_targets

__all__ = [
    "DeliverySummary",
    "check_new_targets",
    "check_targets",
    "deliver_after_cycle",
    "deliver_due",
    "ping",
    "ping_after",
]
