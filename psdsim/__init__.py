"""Predict what speculative and parallel speculative decoding do to LLM serving."""

__version__ = "0.1.0"
