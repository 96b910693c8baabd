"""Deep Nash value iteration: self-play by the equilibrium of each turn's game on learned values."""
