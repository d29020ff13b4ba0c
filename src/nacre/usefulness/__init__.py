"""Whether memory helps: sessions that were told something, beside those that were held out."""
