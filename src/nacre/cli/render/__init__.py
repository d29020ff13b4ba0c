"""What people read: answers as lines on a :class:`~nacre.cli.paper.Paper`."""
