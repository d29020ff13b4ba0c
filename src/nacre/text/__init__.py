"""Pure functions on text: words, stems, shingles, time expressions."""
