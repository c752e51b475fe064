"""Waiting for something that another connection brings: whoever changes a value says so, whoever waits looks again."""

import asyncio
from collections.abc import Callable

from tidegauge.drive.wire.primitives import WireError

PATIENCE = 120.0
"""How long the other side may take for anything, in seconds: beyond it something is broken."""


class Signs:
    """Conditions that are waited for, on one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[bool], Callable[[], bool]] = {}
        self._problem: BaseException | None = None

    def changed(self) -> None:
        """Something has: those who waited for it go on."""
        for future, met in list(self._waiting.items()):
            if not future.done() and met():
                future.set_result(True)

    def broken(self, problem: BaseException) -> None:
        """Nothing more will come: whoever waits, now or later, gets the reason."""
        self._problem = self._problem or problem
        for future in self._waiting:
            if not future.done():
                future.set_exception(WireError(str(problem)))

    async def within(self, met: Callable[[], bool], seconds: float) -> bool:
        """Wait until it is so, but no longer; whether it is. Raises WireError when something is known to be broken."""
        if self._problem is not None:
            raise WireError(str(self._problem)) from self._problem
        if met():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting[future] = met
        timer = loop.call_later(seconds, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()
            del self._waiting[future]

    async def wait_for(self, met: Callable[[], bool], what: str) -> None:
        """Wait until it is so. Raises WireError when it takes too long."""
        if not await self.within(met, PATIENCE):
            raise WireError(f"the broker: expected {what} within {PATIENCE:g} s; seen nothing")


def _expire(future: "asyncio.Future[bool]") -> None:
    if not future.done():
        future.set_result(False)
