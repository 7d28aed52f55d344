"""Closed forms of speculative and parallel speculative decoding, exact where they can be.

One function, one equation, with its source; "theory note n.m" is ``docs/theory-note.md``. Nothing
here imports the simulator, so theory can't leak into what it checks, nor back.
"""
