"""The tools, one function each: what was asked, the operations it takes, the answer in words."""
