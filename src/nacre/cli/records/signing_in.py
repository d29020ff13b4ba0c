"""What nacre can sign in with, as JSON. No secret is in it."""

from __future__ import annotations

from nacre.cli.records.values import Record, stamp
from nacre.setup.credentials import SigningIn, Way


def status_record(found: SigningIn) -> Record:
    """Every way, the commands of agent tools, and where keys are kept."""
    return {
        "model": found.model,
        "ways": [way_record(way) for way in found.ways],
        "programs": [
            {"provider": one.provider, "name": one.name, "path": one.path or None} for one in found.programs
        ],
        "keyring": found.keyring or None,
        "why_no_keyring": found.why_no_keyring or None,
        "key_file": found.key_file,
    }  # fmt: skip


def way_record(way: Way) -> Record:
    """One way to sign in."""
    best = way.best
    credential = best.credential if best else None
    return {
        "method": way.method or None, "provider": way.provider, "label": way.label, "state": way.state,
        "used": way.is_used,
        "kind": credential.kind if credential else None,
        "masked": credential.masked if credential else None,
        "origin": best.origin if best else None,
        "expires": stamp(best.expires) if best else None,
        "problem": (best.problem or None) if best else None,
        "warning": (best.warning or None) if best else None,
        "hint": (best.hint or None) if best else None,
        "looked": [place.origin for place in way.places],
    }  # fmt: skip
