"""Columns of the Gram matrix within a memory limit; sums in two doubles; sparse products."""
