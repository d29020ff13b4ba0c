"""Tasks of Cline and Roo Code."""
