"""The URLs of git remotes, which are spelt in many ways."""

from __future__ import annotations

import re


def normalise_remote(url: str) -> str:
    """``git@host:owner/name.git`` and ``https://user@host:8443/owner/name/`` become ``host/owner/name``.

    Ports are left out: a server's differ by the way in. So is ``ssh.``, the name that some have for ssh over HTTPS.
    """
    text = url.strip().replace("\\", "/")
    rest = re.sub(r"^[A-Za-z+]+://", "", text)
    has_scheme, text = rest != text, re.sub(r"^[^@/]+@", "", rest)
    if has_scheme or text == rest:  # "host:2222/owner/name" without a user is what was stored of a URL with a port
        text = re.sub(r"^([^/:]+):\d*(?=/)", r"\1", text)
    text = re.sub(r"^([^/:]{2,}):", r"\1/", text)
    text = re.sub(r"^(?:alt)?ssh\.(?=[^/]+\.)", "", re.sub(r"/{2,}", "/", text))
    return text.rstrip("/").removesuffix(".git").lower()
