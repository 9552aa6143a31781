"""The paper's tables and figures as data, and the code that runs, resumes and reports them.

models.py       what is trained, and what is tested on it
paper.py        the paper's own numbers
layout.py       what a table or a figure consists of
catalogue.py    every table and figure: rows, panels, what the paper says
measuring.py    every test and study of a trained network, as plain numbers
campaign.py     working through units within a time
ending.py       what ends a unit before its recipe does
processes.py    the same with a process a unit
records.py      what units left behind, one record each
shape.py        whether a record holds what it should
damage.py       results that somebody damaged, in one line
counts.py       results without curves: problems solved after many iterations
statistics.py   means over seeds, and when two numbers differ
measures.py     what a cell of a table is, taken from records
older.py        whether a recipe has changed since
rows.py         the rows of tables
checks.py       how a verdict on a claim is reached
claims.py       the paper's claims as data
headline.py     the paper's network at the paper's iterations, for the README
drawing.py      the figures
reference.py    the authors' own maze run beside ours
every_seed.py   our own recipes from every seed
singles.py      single runs that are no records
timed.py        networks that had a time each instead of the paper's epochs
report.py       RESULTS.md
counting.py     filling rows without curves
reproducing.py  what is missing, how long it takes, what a small machine leaves out
"""
