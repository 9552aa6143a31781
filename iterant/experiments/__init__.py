"""The paper's tables and figures as data, and the code that runs, resumes and reports them.

models.py          what is trained, and its tests
catalogue.py       every table and figure: the paper's numbers, rows, panels
train_and_test.py  train and test one run
records.py         records of trained networks: one schema, one reader
measures.py        numbers and curves, taken from records, and when two numbers differ
claims.py          the paper's claims, and verdicts on them
figures.py         the figures and their captions
report.py          RESULTS.md and its tables
reproduce.py       what is missing, how long it takes, and how to fill it
"""
