"""What a report names: the version of the package, and that of the suite.

The suite is what a broker is held against: the rules, the graphs, the walks of a seed, the profiles, the probe's checks. It
is named after its month. A new suite may fail a broker that the last one passed; a new package need not have a new suite.
"""

PACKAGE_VERSION = "1.0.0"

SUITE_VERSION = "2026.12"

TOOL = f"tidegauge {PACKAGE_VERSION}, suite {SUITE_VERSION}"
"""Both, as reports write them."""
