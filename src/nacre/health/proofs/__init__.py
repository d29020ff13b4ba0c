"""One module a part of the home, each proving it against what it was made from. Proofs look; they mend nothing."""
