"""Commands about whose memory it is."""
