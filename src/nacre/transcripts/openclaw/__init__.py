"""OpenClaw and pi: session files, and OpenClaw's store."""
