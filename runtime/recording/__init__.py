"""Recording: a process of its own keeps games and decisions; moves never wait for a disk.

`recorder` is the server's side, `writer` the process. Nothing is imported here: the process needs
little of what the server does.
"""
