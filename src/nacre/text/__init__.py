"""Pure functions on text: words, stems, time expressions."""
