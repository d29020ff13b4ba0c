"""Code in the database: symbols and edges of repositories, and the memories that name them."""
