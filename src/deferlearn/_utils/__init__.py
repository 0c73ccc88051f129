"""Threads, jobs, files, digests and checks: nothing here knows a machine or a human."""
