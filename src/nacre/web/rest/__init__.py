"""REST upon the operations: resources, their parameters and pages, and the document that describes all routes."""
