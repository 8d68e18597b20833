"""Queries written in SQL, turned into the operators that carry them out.

What a query means is what Spark SQL means by it, with these rules of our own:

- A query's rows carry the event time along, selected or not: the stream's time column, behind a window
  ``window_time``, behind a join ``join_time``. A column of that name is that column and nothing else.
- A column that is computed must have a name (``AS``); a column that is only read keeps its own.
- ``window.start`` and ``window.end`` come out as ``window_start`` and ``window_end`` unless they are given
  another name, and ``window`` as both.
- Aggregates need exactly one ``window(time, size[, slide])`` in GROUP BY, over the event time.
- A join needs a bound on the time between its rows, from both sides: ``a.ts BETWEEN b.ts - INTERVAL 2
  MINUTES AND b.ts + INTERVAL 2 MINUTES``. Bounds may differ: the wider one bounds the join, the rest of the
  condition is asked of its pairs.

The last operator has the query's name, those before it ``<query>.<what it does>``; a written operator's
name has no dot, and a query has no routes, so nothing else can be called that.
"""

from levelwind.frontend.sql.naming import belongs_to
from levelwind.frontend.sql.parsing import parse_query, tables_read
from levelwind.frontend.sql.translation import translate

__all__ = ["belongs_to", "parse_query", "tables_read", "translate"]
