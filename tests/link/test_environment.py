"""Where nacre lives, as the environment says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nacre.base.environment import home_folder


@pytest.mark.skipif(sys.platform == "win32", reason="accounts are looked up otherwise there")
def test_empty_home_variable_falls_back_to_the_users_home() -> None:
    import pwd

    assert home_folder({"HOME": ""}) == str(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".nacre")


def test_home_is_set_by_option_or_variable_or_default() -> None:
    environ = {"HOME": "/code/ada", "NACRE_HOME": "~/memory"}
    assert home_folder(environ, "/code/other") == "/code/other"
    assert home_folder(environ) == "/code/ada/memory"
    assert home_folder({"HOME": "/code/ada"}) == "/code/ada/.nacre"
