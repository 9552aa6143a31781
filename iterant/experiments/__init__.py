"""The paper's tables and figures as data, and the code that runs, resumes and reports them.

models.py         what is trained, and its tests
catalogue.py      every table and figure: rows, panels
paper_numbers.py  the paper's numbers, and those of others on other mazes
reproduce.py      what is missing, how long it takes; train it and test it
records.py        records of trained networks: one schema, one reader
measures.py       numbers and curves, taken from records
statistics.py     means over seeds, their intervals, and when two means differ
claims.py         the paper's claims, and verdicts on them
figures.py        the figures
shifts.py         test networks on mazes unlike the paper's
past_the_paper.py their tables and heat maps
report.py         RESULTS.md, whose text is results.md, and its tables
"""
