"""`snakekit arena`: many games among any players, and what they say about strength."""
