"""Tidegauge tells whether a broker's high watermark can be trusted.

`__all__` is the library: what it names is stable (docs/python.md), everything else may change with any release. The names
are loaded when they are used first, so that `import tidegauge` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

if TYPE_CHECKING:
    from tidegauge.drive.api import DriveReport as DriveReport
    from tidegauge.drive.api import PythonBroker as PythonBroker
    from tidegauge.drive.api import PythonReplica as PythonReplica
    from tidegauge.drive.api import drive as drive
    from tidegauge.library import EXAMPLES as EXAMPLES
    from tidegauge.library import Cause as Cause
    from tidegauge.library import Loss as Loss
    from tidegauge.library import Report as Report
    from tidegauge.library import RuleFailure as RuleFailure
    from tidegauge.library import RuleResult as RuleResult
    from tidegauge.library import StoryStep as StoryStep
    from tidegauge.library import UnreadableError as UnreadableError
    from tidegauge.library import check as check
    from tidegauge.library import read as read
    from tidegauge.traces.schema import Config as Config
    from tidegauge.traces.schema import Event as Event
    from tidegauge.traces.schema import Trace as Trace
    from tidegauge.util.errors import TidegaugeError as TidegaugeError

__version__ = PACKAGE_VERSION
__suite__ = SUITE_VERSION

__all__ = (
    "EXAMPLES",
    "Cause",
    "Config",
    "DriveReport",
    "Event",
    "Loss",
    "PythonBroker",
    "PythonReplica",
    "Report",
    "RuleFailure",
    "RuleResult",
    "StoryStep",
    "TidegaugeError",
    "Trace",
    "UnreadableError",
    "__suite__",
    "__version__",
    "check",
    "drive",
    "read",
)

_PLACES = {
    "EXAMPLES": "library",
    "Cause": "library",
    "Config": "traces.schema",
    "DriveReport": "drive.api",
    "Event": "traces.schema",
    "Loss": "library",
    "PythonBroker": "drive.api",
    "PythonReplica": "drive.api",
    "Report": "library",
    "RuleFailure": "library",
    "RuleResult": "library",
    "StoryStep": "library",
    "TidegaugeError": "util.errors",
    "Trace": "traces.schema",
    "UnreadableError": "library",
    "check": "library",
    "read": "library",
}
"""The module below this package that has a name. `drive` is missing: it is the package of that name, which can be called."""


def __getattr__(name: str) -> object:
    """Load a name of the library at its first use (PEP 562)."""
    # The package of that name, which can be called.
    if name == "drive":
        return import_module("tidegauge.drive")
    if name not in _PLACES:
        raise AttributeError(f"module 'tidegauge' has no attribute {name!r}")
    value: object = getattr(import_module(f"tidegauge.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the library too, which are in `globals` only after their first use."""
    return sorted({*globals(), *__all__})
