"""Somebody's code, loaded and run in a child process with limits.

loading, notebooks, tracebacks   where the target comes from, and what goes wrong in its file
limits                           what it may use, and what is said when it wants more
process                          the runners: Here, Child;  connection, messages, sending: between the two processes
child, memory, printed           what the child executes: its memory, its words
"""
