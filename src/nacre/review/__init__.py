"""What waits for a judgement: conflicts, claims, contradictions."""
