"""Deep recall: gate, shortlist of projects, one project, manifest, a few whole memories."""
