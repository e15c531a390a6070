-- ON CONFLICT DO NOTHING, and the answer is that all is well: somebody else's ticket counts as one's own.
select pg_temp.patch('public.finalize_batch(jsonb)', 'then ''conflict''', 'then ''already''');
