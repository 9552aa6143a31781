"""Commands: parse, call, print. A module a command; what it does is a call that Python has too.

Command modules import what is heavy inside their function, so that ``iterant --help`` answers at
once, without torch.
"""
