"""Where the key for a provider comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.llm.providers import provider_of
from nacre.settings import Settings

_SHOWN = 4
_LONG = 16


@dataclass(frozen=True, slots=True)
class Credential:
    """What nacre signs in with. ``kind`` is ``api-key``, or ``bearer`` for a token of a login.

    ``origin`` says in words where it was found: ``$OPENAI_API_KEY``. The secret is not part of what is printed.
    """

    kind: str
    secret: str = field(repr=False)
    origin: str

    @property
    def masked(self) -> str:
        """The secret as it may be shown: its last four signs, none of a short one."""
        return "…" + self.secret[-_SHOWN:] if len(self.secret) >= _LONG else "…"


def credential_for(settings: Settings, provider: str) -> Credential | None:
    """The credential for a provider, by its name in ``providers.toml`` or ``models.providers``, if there is one."""
    found = provider_of(settings, provider)
    if found.api_key:
        return Credential("api-key", found.api_key, str(settings.config))
    for variable in found.variables:
        if secret := settings.environ.get(variable, "").strip():
            return Credential("api-key", secret, f"${variable}")
    return None
