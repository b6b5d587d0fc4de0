"""Which services a shell text restarts or redeploys. Pure. ``remedies`` is all there is to call; for climb.warden.

One module for each family of tools: ``containers``, ``clusters``, ``hosts``, ``signals``, ``ansible``. They share
``words`` (arguments and names), and ``recognise`` asks the one that knows the program.
"""

from supervisor.decide.remedy.recognise import remedies

__all__ = ["remedies"]
