"""What fills the terminal: single keys, a screen that is drawn anew, the triage of review, the picker of recall."""
