"""Tidegauge tells whether a broker's high watermark can be trusted.

The rooms of the house are packages of this one name: in a checkout by links to the folders beside this one, in the wheel as
folders of their own (docs/decisions/0005-one-import-name.md).
"""
