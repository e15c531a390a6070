-- A pool's hooks stand on the public internet, or on a host that an operator has allowed by name.
begin;
select plan(136);

select is(
  intake.hook_url_refusal(t.url), t.refusal, format('%s: %s', t.url, coalesce(t.refusal, 'may be a hook'))
)
from (
  select url, null as refusal from unnest(array[
    'https://example.com', 'http://example.com/path?x=1#y', 'HTTPS://Hooks.Example.COM:8443/a', 'https://8.8.8.8/',
    'https://1.1.1.1:65535', 'https://[2606:4700:4700::1111]/', 'https://xn--bcher-kva.example/', 'https://a.b-c.example.',
    'https://172.15.255.255/', 'https://172.32.0.1/', 'https://100.63.255.255/', 'https://100.128.0.0/',
    'https://11.0.0.1/', 'https://126.255.255.255/', 'https://169.253.0.1/', 'https://192.167.1.1/',
    'https://198.17.0.1/', 'https://198.20.0.1/', 'https://223.255.255.255/', 'https://internal.example.com/',
    'https://localhost.example.com/', 'https://127.example.com/'
  ]) url
  union all
  select url, 'a private or special address' from unnest(array[
    'http://127.0.0.1', 'http://127.255.255.254:80/', 'http://0.0.0.0/', 'http://10.0.0.1/', 'http://10.255.255.255/',
    'http://172.16.0.1/', 'http://172.31.255.255/', 'http://192.168.0.1/', 'http://169.254.169.254/latest/meta-data/',
    'http://100.64.0.1/', 'http://100.100.100.200/', 'http://168.63.129.16/', 'http://192.0.0.192/', 'http://192.0.2.1/',
    'http://198.18.0.1/', 'http://198.51.100.1/', 'http://203.0.113.1/', 'http://192.88.99.1/', 'http://224.0.0.1/',
    'http://239.255.255.255/', 'http://240.0.0.1/', 'http://255.255.255.255/', 'http://127.0.0.1./',
    'http://[::]/', 'http://[::1]:8080/', 'http://[0:0:0:0:0:0:0:1]/', 'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/', 'http://[::ffff:8.8.8.8]/', 'http://[::127.0.0.1]/', 'http://[64:ff9b::7f00:1]/',
    'http://[64:ff9b:1::1]/', 'http://[2002:7f00:1::]/', 'http://[2001::1]/', 'http://[2001:db8::1]/', 'http://[3fff::1]/',
    'http://[fc00::1]/', 'http://[fd00:ec2::254]/', 'http://[fe80::1]/', 'http://[fec0::1]/', 'http://[ff02::1]/',
    'http://[100::1]/', 'http://[5f00::1]/'
  ]) url
  union all
  select url, 'an address in an unusual spelling' from unnest(array[
    'http://2130706433/', 'http://0177.0.0.1/', 'http://0x7f.0.0.1/', 'http://0x7f000001/', 'http://127.1/', 'http://127.0.1/',
    'http://0/', 'http://010.8.8.8/', 'http://1.2.3.4.5/', 'http://example.0x1/', 'http://foo.1/'
  ]) url
  union all
  select url, 'a local name' from unnest(array[
    'http://localhost/', 'http://LOCALHOST:3000/', 'http://localhost./', 'http://a.localhost/', 'http://db/', 'http://x.local/',
    'http://metadata.google.internal/', 'http://metadata.google.internal./'
  ]) url
  union all
  select url, 'has credentials in it' from unnest(array[
    'https://user@example.com/', 'https://user:pass@example.com/', 'http://example.com@127.0.0.1/', 'http://@example.com/'
  ]) url
  union all
  select url, 'not a plain http or https URL' from unnest(array[
    '', 'example.com', '//example.com', 'ftp://example.com/', 'file:///etc/passwd', 'javascript:alert(1)', 'gopher://example.com',
    'http://', 'http:///x', 'http:example.com', 'https://exa mple.com/', E'https://example.com/\n', E'https://exam\tple.com',
    'https://example.com\.evil/', 'https://example.com/\x', 'https://%31%32%37.0.0.1/', 'https://１２７.0.0.1/',
    'https://example.com:port/', 'http://[fe80::1%25eth0]/'
  ]) url
  union all
  select url, 'no address' from unnest(array['http://256.1.1.1/', 'http://1.2.3.999/', 'http://[:::]/']) url
) t;

select throws_ok(
  $$ insert into public.engine_config (pool_id, commit_webhook_url) values ('w', 'http://169.254.169.254/') $$, 'SL001',
  'the hook URL of pool w is refused: a private or special address', 'a pool cannot be made with such a commit hook'
);
select throws_ok(
  $$ insert into public.engine_config (pool_id, validation_webhook_url) values ('w', 'http://localhost/') $$, 'SL001',
  'the hook URL of pool w is refused: a local name', 'nor with such a validation hook'
);
insert into public.engine_config (pool_id, commit_webhook_url) values ('w', 'https://example.com/commit');
select throws_ok(
  $$ update public.engine_config set commit_webhook_url = 'http://127.0.0.1:9/' where pool_id = 'w' $$, 'SL001', null,
  'nor can a pool be given one'
);
select is(
  (select commit_webhook_url from public.engine_config where pool_id = 'w'), 'https://example.com/commit', 'it keeps what it had'
);

select throws_ok(format($$ select public.allow_hook_host(%L, 'olga') $$, h), 'SL001', null, coalesce(h, 'null') || ' is not a host')
from unnest(array['http://127.0.0.1', '127.0.0.1/x', 'a b', '', '*', 'u@h', null]) h;
select throws_ok($$ select public.allow_hook_host('h', null) $$, 'SL001', null, 'an operator must give a name to allow a host');
select is_empty($$ select public.hook_allowed_hosts() $$, 'no host is allowed to begin with');

select is(public.allow_hook_host('127.0.0.1:9', 'olga', 'dev'), true, 'an operator allows a host and a port');
select is(public.allow_hook_host('127.0.0.1:9', 'olga', 'dev'), false, 'a second time there is nothing to do');
select is(public.allow_hook_host('LocalHost', 'olga'), true, 'or a host with all its ports');
select results_eq(
  $$ select public.hook_allowed_hosts() $$, array['127.0.0.1:9', 'localhost'], 'the list says which'
);
select results_eq(
  $$ select actor, action, subject, reason from audit.audit_logs order by id $$,
  $$ values ('olga', 'hook_host_allow', 'hook host 127.0.0.1:9', 'dev'),
    ('olga', 'hook_host_allow', 'hook host localhost', null) $$,
  'each change has its audit row'
);
select lives_ok(
  $$ update public.engine_config set commit_webhook_url = 'http://127.0.0.1:9/', validation_webhook_url = 'http://localhost:77/'
     where pool_id = 'w' $$, 'then a pool can have hooks there'
);
select throws_ok(
  $$ update public.engine_config set commit_webhook_url = 'http://127.0.0.1:10/' where pool_id = 'w' $$, 'SL001', null,
  'but not on another port'
);
select is(
  intake.hook_url_refusal('http://u@127.0.0.1:9/'), 'has credentials in it', 'and never with credentials in the URL'
);
select is(public.disallow_hook_host('127.0.0.1:9', 'olga', 'over'), true, 'an operator takes it off the list');
select is(public.disallow_hook_host('127.0.0.1:9', 'olga'), false, 'a second time there is nothing to do');
select is((select count(*)::int from audit.audit_logs), 3, 'and no audit row');
select lives_ok(
  $$ update public.engine_config set batch_size = 5 where pool_id = 'w' $$, 'a pool that has it can still be changed otherwise'
);
select throws_ok(
  $$ update public.engine_config set commit_webhook_url = commit_webhook_url where pool_id = 'w' $$, 'SL001', null,
  'but its URL cannot be stored again'
);

select * from finish();
rollback;
