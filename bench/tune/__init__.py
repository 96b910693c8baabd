"""`snakekit bench tune`: better weights for the evaluation, by games of the search with itself."""
