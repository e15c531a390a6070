-- auth.uid() and its sisters, called bare in a policy, are called for every row; inside a select of their own, once.
select p.polname || ' on ' || p.polrelid::regclass::text as offence
from pg_catalog.pg_policy p
cross join lateral (
  values (pg_catalog.pg_get_expr(p.polqual, p.polrelid)), (pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
) e (expression)
where regexp_replace(
  e.expression, '\(\s*select\s+(auth\.(uid|jwt|role)\(\)|current_setting\([^()]*\))', '', 'gi'
) ~* '(auth\.(uid|jwt|role)|current_setting)\s*\(';
