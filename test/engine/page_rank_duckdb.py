"""PageRank by DuckDB over the folder that `nearcrawl graph export --format parquet` writes; the result is for `nearcrawl rank --from`.

    python page_rank_duckdb.py GRAPH RANKS.parquet [DAMPING [TOLERANCE [ITERATIONS]]]

The surfer is the one of `nearcrawl rank`: links of a page to itself do not count, and a page without links gives its rank
to all alike. Iterations end when one changes the ranks by less than the tolerance in all. What does not fit into memory
goes to a file beside the result.
"""

import os
import sys

import duckdb

graph, result = sys.argv[1:3]
damping, tolerance, iterations = [float(given) for given in sys.argv[3:]] + [0.85, 1e-6, 200][len(sys.argv) - 3 :]

work = result + ".work"
db = duckdb.connect(work)
db.execute(f"""
    create or replace table page as
    select row_number() over () as id, host_hash, url_hash from '{graph}/nodes.parquet';
    create or replace table link as
    select s.id as source, t.id as target, count(*) over (partition by s.id) as links
    from '{graph}/edges.parquet' e
    join page s on s.host_hash = e.from_host_hash and s.url_hash = e.from_url_hash
    join page t on t.host_hash = e.to_host_hash and t.url_hash = e.to_url_hash
    where s.id <> t.id;
    create or replace table linking as select distinct source as id from link;
    create or replace table rank as select id, 1 / count(*) over () as rank from page;
""")
pages = db.execute("select count(*) from page").fetchone()[0]
change, iteration = float(pages > 0), 0
while change >= tolerance and iteration < iterations:
    (dangling,) = db.execute("select coalesce(sum(rank), 0) from rank anti join linking using (id)").fetchone()
    db.execute(f"""
        create or replace table next as
        select id, {(1 - damping + damping * dangling) / pages} + {damping} * coalesce(share, 0) as rank, rank as before
        from rank
        left join (select target as id, sum(rank / links) as share from link join rank on id = source group by 1) using (id)
    """)
    (change,) = db.execute("select sum(abs(rank - before)) from next").fetchone()
    db.execute("create or replace table rank as select id, rank from next")
    iteration += 1
db.execute(f"copy (select host_hash, url_hash, rank as page_rank from page join rank using (id)) to '{result}' (format parquet)")
db.close()
os.remove(work)
print(f"{pages} pages, {iteration} iterations, the last changed {change:.1e}")
