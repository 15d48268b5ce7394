"""Runs queries in Spark, in local mode, on the data set in `fleet`: PACKAGE is where pyspark is installed, standard input a JSON list
of queries, each answered by a list of objects."""

import json
import sys

sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
for table in ("blocks", "stacks", "traces", "timeline", "slices", "probes"):
    spark.read.parquet(f"fleet/{table}").createOrReplaceTempView(table)
answers = [[row.asDict() for row in spark.sql(query).collect()] for query in json.load(sys.stdin)]
json.dump(answers, sys.stdout, default=str)
