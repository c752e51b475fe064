"""The judge's kernel: one function per event, over columns and a table of integers, interpreted or compiled.

`judge_kernel` goes through the events and hands each to the file of its actor: leader, follower, controller, life. What is
known of a trace stands in the table of `state`, what was decided in `tally`; `compiled` makes machine code of the same text.
"""
