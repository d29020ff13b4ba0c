"""Operations: the journal, git, undo."""
