"""The paper's tables and figures as data, and the code that runs, resumes and reports them.

models.py         what is trained, and its tests
catalogue.py      every table and figure: the paper's numbers, rows, panels
reproduce.py      what is missing, how long it takes; train it and test it
records.py        records of trained networks: one schema, one reader
measures.py       numbers and curves, taken from records
statistics.py     means over seeds, their intervals, and when two means differ
claims.py         the paper's claims, and verdicts on them
shifts.py         mazes unlike the paper's: tests of networks, tables, numbers of others
figures.py        the figures
report.py         RESULTS.md, whose text is results.md, and its tables
"""
