"""Runs queries in DuckDB: PACKAGE is where it is installed, standard input a JSON list of statements, of which those
that return rows are answered, each by a list of objects."""

import json
import sys

sys.path.insert(0, sys.argv[1])
import duckdb

connection = duckdb.connect()
answers = []
for statement in json.load(sys.stdin):
    cursor = connection.execute(statement)
    names = [column[0] for column in cursor.description]
    answers.append([dict(zip(names, row)) for row in cursor.fetchall()])
json.dump(answers, sys.stdout, default=str)
