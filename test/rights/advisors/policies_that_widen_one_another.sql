-- Several permissive policies for one role and one action are or-ed together, and each is evaluated.
select p.polrelid::regclass::text || ' has ' || count(*) || ' for ' || r.role::regrole::text as offence
from pg_catalog.pg_policy p
cross join lateral unnest(p.polroles) r (role)
cross join lateral unnest(case p.polcmd when '*' then array['r', 'a', 'w', 'd'] else array[p.polcmd::text] end) a (action)
where p.polpermissive
group by p.polrelid, r.role, a.action
having count(*) > 1;
