"""Exports of whole accounts: ChatGPT and Claude.ai."""
