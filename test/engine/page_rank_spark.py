"""PageRank by Spark over the folder that `nearcrawl graph export --format parquet` writes; the result is for `nearcrawl rank --from`.

    spark-submit page_rank_spark.py GRAPH RANKS [DAMPING [TOLERANCE [ITERATIONS]]]

RANKS is a folder of Parquet files. The surfer is the one of `nearcrawl rank`: links of a page to itself do not count, and
a page without links gives its rank to all alike. Iterations end when one changes the ranks by less than the tolerance in all.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

graph, result = sys.argv[1:3]
damping, tolerance, iterations = [float(given) for given in sys.argv[3:]] + [0.85, 1e-6, 200][len(sys.argv) - 3 :]

spark = SparkSession.builder.appName("PageRank").getOrCreate()
spark.sparkContext.setLogLevel("WARN")
source, target, key = ["from_host_hash", "from_url_hash"], ["to_host_hash", "to_url_hash"], ["host_hash", "url_hash"]
edges = spark.read.parquet(f"{graph}/edges.parquet").select(*source, *target)
is_own = (f.col(source[0]) == f.col(target[0])) & (f.col(source[1]) == f.col(target[1]))
links = edges.where(~is_own).repartition(*source).persist()
nodes = spark.read.parquet(f"{graph}/nodes.parquet").select(*key)
degrees = links.groupBy(*source).agg(f.count("*").alias("links")).toDF(*key, "links")
pages = nodes.count()
# A checkpoint cuts the plan, which would grow with each iteration.
ranks = nodes.join(degrees, key, "left").withColumn("page_rank", f.lit(1 / max(pages, 1))).localCheckpoint()
dangling = f.coalesce(f.sum(f.when(f.col("links").isNull(), f.col("page_rank"))), f.lit(0.0))
lost = ranks.agg(dangling).first()[0]
change, iteration = float(pages > 0), 0
while change >= tolerance and iteration < iterations:
    giving = ranks.where("links is not null").select(*key, (f.col("page_rank") / f.col("links")).alias("share"))
    shares = links.join(giving.toDF(*source, "share"), source).groupBy(*target).agg(f.sum("share")).toDF(*key, "share")
    rank = (1 - damping + damping * lost) / pages + damping * f.coalesce("share", f.lit(0.0))
    before = ranks.withColumnRenamed("page_rank", "before")
    ranks = before.join(shares, key, "left").withColumn("page_rank", rank).select(*key, "links", "page_rank", "before").localCheckpoint()
    change, lost = ranks.agg(f.sum(f.abs(f.col("page_rank") - f.col("before"))), dangling).first()
    ranks = ranks.drop("before")
    iteration += 1
ranks.select(*key, "page_rank").write.mode("overwrite").parquet(result)
print(f"{pages} pages, {iteration} iterations, the last changed {change:.1e}")
