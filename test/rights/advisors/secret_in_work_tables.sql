-- A job's command, what became of it, and the answers to requests stay for days: they hold no key. Neither does a request
-- that waits for longer than a sender needs: until it is sent, its Authorization header has to be there.
select t.place as offence
from (
  select 'job ' || coalesce(j.jobname, j.jobid::text), j.command from cron.job j
  union all
  select 'run of ' || d.jobid, concat(d.command, d.return_message) from cron.job_run_details d
  union all
  select 'answer ' || r.id, concat(r.headers::text, r.content, r.error_msg) from net._http_response r
  union all
  select 'request ' || q.id, concat(q.url, convert_from(q.body, 'UTF8')) from net.http_request_queue q
) t (place, text)
where t.text ~ 'eyJ[A-Za-z0-9_-]{8,}\.' or t.text ~* 'bearer\s+\S' or t.text ~ '\y(sk|whsec|sb_secret)_[A-Za-z0-9]'
  or t.text ~ '://[^/@\s:]*:[^/@\s]+@' or t.text ~* '(password|secret|service_role_key)[''"]?\s*[=:]';
