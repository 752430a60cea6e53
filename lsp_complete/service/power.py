"""How much may be done before it is asked for: the user's setting, one step less while the machine runs on its battery.

Rules: the battery is looked at twice a minute at most; a machine that tells nothing of one has none.
"""

from __future__ import annotations

from collections.abc import Callable

import psutil

from ..config import Settings

LOOK_EVERY_S = 30.0
_LESS = {"full": "light", "light": "off", "off": "off"}


def on_battery() -> bool:
    """Whether the machine runs on a battery now. Reads some small files; any thread."""
    look = getattr(psutil, "sensors_battery", None)
    try:
        state = look() if look is not None else None
    except (OSError, RuntimeError, psutil.Error):
        return False
    return state is not None and state.power_plugged is False


class Thrift:
    """Settings with `prefetch` as it counts now. clock: seconds; look: whether the machine runs on a battery."""

    def __init__(self, clock: Callable[[], float], look: Callable[[], bool] = on_battery) -> None:
        self._clock, self._look = clock, look
        self._looked_at = float("-inf")
        self._battery = False
        self._made: tuple[Settings, Settings] | None = None

    def saving(self) -> bool:
        """Whether the machine runs on its battery, as far as was looked."""
        now = self._clock()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at, self._battery = now, self._look()
        return self._battery

    def settings(self, settings: Settings) -> Settings:
        """The settings in force for work ahead: themselves unless on battery."""
        if settings.prefetch == "off" or not self.saving():
            return settings
        made = self._made
        if made is None or made[0] is not settings:
            less = settings.model_copy(update={"prefetch": _LESS[settings.prefetch]})
            made = self._made = (settings, less)
        return made[1]
