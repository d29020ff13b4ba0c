"""Looking back: what a day or a period brought, as numbers, as pictures and as a page."""
