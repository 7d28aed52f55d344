"""Step-time tables of both models, measured alone and while the other one works."""
