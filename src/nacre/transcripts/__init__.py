"""Transcripts → sessions: one small adapter per agent tool.

An adapter is a frozen :class:`~nacre.transcripts.adapter.Adapter` record in a module of its own. Built-ins and third
parties register through the same door, :mod:`nacre.transcripts.registry`.
"""
