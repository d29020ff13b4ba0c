"""Operations that list, show, search and summarise sessions, their changes, and fixes of errors."""
