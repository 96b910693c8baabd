"""The search's learned value: a network fitted to what deeper searches say."""
