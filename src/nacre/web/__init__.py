"""The home over HTTP: its operations for programs, and the dashboard for people.

It needs the extra ``web``, and nothing of it is loaded until HTTP is served.
"""
