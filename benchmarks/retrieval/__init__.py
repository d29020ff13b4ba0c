"""How well recall finds what public benchmarks ask for, and when it keeps silent."""
