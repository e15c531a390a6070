-- Everything, catalogs too: whichever system drains next meets clean tables and fresh statistics.
vacuum (analyze);
