"""Transcripts → sessions: one small adapter per agent tool and format.

An adapter is a frozen :class:`~nacre.transcripts.adapter.Adapter` record. Adapters lie in packages by tool; those of
one module are in ``tools``, formats of no tool in ``generic``. Built-ins and third parties register through the same
door, :mod:`nacre.transcripts.registry`. The modules here serve all of them: sources of lines and of sessions in
databases, conversations, tool calls, trust.
"""
