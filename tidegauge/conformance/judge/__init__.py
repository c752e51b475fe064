"""The judge's kernel: one function per event, over columns and a table of integers, interpreted or compiled.

`judge_kernel` passes each event to its function in the file of its actor: leader, follower, controller, life. What is known
of a trace is in the table of `state` (`s.HW` is a column), results go to `tally`; `compiled` makes machine code of it.
"""
