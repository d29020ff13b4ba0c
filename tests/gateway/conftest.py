"""The command line in this process, for tests of the gateway."""

from tests.cli.conftest import Nacre, Outcome, nacre  # noqa: F401 - fixtures
