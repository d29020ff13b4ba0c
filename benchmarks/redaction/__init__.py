"""How many secrets redaction removes, and how often it errs."""
