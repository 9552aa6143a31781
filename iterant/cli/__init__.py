"""The commands: parse, call, print. Each has its module; what it does is a call in Python too.

Heavy modules are imported within functions, so that ``iterant --help`` does not load torch.
"""
