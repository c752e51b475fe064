"""Takes a broker through every local step of the model. The package itself can be called: `tidegauge.drive(node)`."""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A function of the library and this package have one name; Python binds it to the package as soon as that is loaded."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call `api.drive`, which has the documentation."""
        from tidegauge.drive.api import drive  # noqa: PLC0415  every module below would wait for all others

        return drive(*arguments, **named)


sys.modules[__name__].__class__ = _CallablePackage
