"""Proximal policy optimization by self-play in a league."""
