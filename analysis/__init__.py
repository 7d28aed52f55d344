"""Closed forms of speculative and parallel speculative decoding."""
