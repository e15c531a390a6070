-- As every reader of the product does before it believes an empty cache.
select intake.ensure_inventory();
