"""The paper's tables and figures as data, and the code that runs, resumes and reports them.

models.py     what is trained, and what is tested on it
measuring.py  every test and study of a trained network, as plain numbers
records.py    what units left behind, one record each
campaign.py   working through units within a time
"""
