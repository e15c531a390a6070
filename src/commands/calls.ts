// `sluice calls`: who may send call events, what was recorded, and a sample to try it with.

import { parseArgs } from 'node:util';
import type { CallSite } from '#core/calls/store.ts';
import { allSites } from '../calls/all_sites.ts';
import { StackError } from '../failure.ts';
import { run as send } from './calls_send.ts';
import type { Command } from './command.ts';
import { withDb2 } from './db2.ts';
import { actor } from './operator.ts';
import { readSecretNames, rotated } from './secret_names.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';

const usage = `sluice calls sites list|add|rotate|disable|enable [site] [options]
sluice calls list|show|send [options]

  sites list             who may send call events
  sites add <site>       a new site: --secret-name ENV_NAME, or --unsigned
  sites rotate <site>    --secret-name NEW goes first, the old ones stay good; with --only they do not
  sites disable <site>   its requests are refused within a second
  sites enable <site>    they are taken again
  list                   calls, newest first, without their payloads
  show <id> …            all that is known about some
  send                   sign a sample call event and post it

Options of sites:
  --secret-name NAME     the name of an environment variable of the server, never the secret; up to five
  --unsigned             take requests without a signature too: nothing recognises their second delivery
  --kind KIND            a kind the site may send; several times for several (default: any)
  --reason TEXT          why, for the audit log

Options of list:
  --site SITE, --event-id ID, --kind KIND
  --before ID            those before this call
  --limit N              at most so many (default 100, at most 1000)

Options of send:
  --to URL               where to (default: /call-events on the running server)
  --site SITE            as whom (default: OPS_SITE_ID)
  --secret S             what to sign with (default: OPS_SITE_SECRET)
  --kind KIND            default: ring
  --event-id ID          the sender's own id (default: none)
  --payload JSON         an object (default: {"sample":true} and a number that makes it new)
  --count N              the very same request so many times, at most 1000: all but the first are a noop

  --json                 for machines

Environment:
  DB2_URL                      Postgres address of the ledger (default: DATABASE_URL, then that of the stack in .sluice)
  SLUICE_URL, OPS_SITE_ID, OPS_SITE_SECRET
                               for send (default: those of the stack in .sluice)
  SLUICE_OPERATOR              who you are, for the audit log (default: $USER)

Exit code: 0 when all is done, 1 when something was not there or was refused, 2 when the call was not understood.

Examples:
  sluice calls sites add branch-7 --secret-name BRANCH_7_SECRET --kind ring --kind hangup
  sluice calls send --count 3
  sluice calls list --site branch-7 --limit 20
`;

const OPTIONS = {
  'secret-name': { type: 'string', multiple: true },
  only: { type: 'boolean', default: false },
  unsigned: { type: 'boolean', default: false },
  kind: { type: 'string', multiple: true },
  reason: { type: 'string' },
  site: { type: 'string' },
  'event-id': { type: 'string' },
  before: { type: 'string' },
  limit: { type: 'string', default: '100' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values'];

interface ListedCall {
  id: string;
  site_id: string;
  event_id: string | null;
  kind: string;
  occurred_at: string;
  received_at: string;
  is_signed: boolean;
}

const MAX_LIMIT = 1_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function run(args: string[]): Promise<number> {
  if (args[0] === 'send') return send(args.slice(1));
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [action, ...rest] = positionals;
  if (action === 'sites') return sites(rest, values);
  if (action === 'list' && rest.length === 0) return list(values);
  if (action === 'show' && rest.length > 0) return show(rest, values);
  throw new UsageError(action === undefined ? 'say what to do' : `calls cannot ${positionals.join(' ')}`);
}

async function sites([action = 'list', siteId, ...rest]: string[], values: Values): Promise<number> {
  if (rest.length > 0) throw new UsageError('one site at a time');
  if (action === 'list') return showSites(await withDb2(allSites), values);
  if (siteId === undefined) throw new UsageError(`${action} needs the id of a site`);
  const secretNames = readSecretNames('--secret-name', values['secret-name'] ?? []);
  if (action === 'add') return add(siteId, secretNames, values);
  if (action === 'rotate') return rotate(siteId, secretNames, values);
  if (action === 'disable') return change(siteId, { is_active: false }, values);
  if (action === 'enable') return change(siteId, { is_active: true }, values);
  throw new UsageError(`sites cannot ${action}`);
}

async function add(siteId: string, secretNames: string[], values: Values): Promise<number> {
  if (secretNames.length === 0 && !values.unsigned)
    throw new UsageError('add needs --secret-name or --unsigned');
  const added = await withDb2(async (db2) => {
    const [row] = await db2.call<{ add_site: boolean }>('calls.add_site', {
      p_site_id: siteId,
      p_secret_names: secretNames,
      p_require_signature: !values.unsigned,
      p_kinds: values.kind ?? null,
      p_actor: actor(),
      p_reason: values.reason ?? null,
    });
    return row?.add_site === true;
  });
  if (!added)
    throw new StackError(`there is a site ${siteId} already`, 'rotate its secrets, or choose another id');
  return showSites(await findSite(siteId), values);
}

async function rotate(siteId: string, given: string[], values: Values): Promise<number> {
  if (given.length === 0) throw new UsageError('rotate needs --secret-name');
  const [site] = await findSite(siteId);
  if (site === undefined) throw unknownSite(siteId);
  return change(siteId, { secret_names: rotated(given, site.secret_names, values.only) }, values);
}

async function change(siteId: string, changes: Record<string, unknown>, values: Values): Promise<number> {
  const changed = await withDb2((db2) =>
    db2.call<CallSite>('calls.change_site', {
      p_site_id: siteId,
      p_changes: changes,
      p_actor: actor(),
      p_reason: values.reason ?? null,
    }),
  );
  if (changed.length === 0) throw unknownSite(siteId);
  return showSites(changed, values);
}

function findSite(siteId: string): Promise<CallSite[]> {
  return withDb2((db2) => db2.call<CallSite>('calls.find_site', { p_site_id: siteId }));
}

function unknownSite(siteId: string): StackError {
  return new StackError(`there is no site ${siteId}`, '`sluice calls sites list` shows them');
}

function showSites(found: CallSite[], { json }: Values): number {
  if (json) console.log(JSON.stringify({ sites: found }));
  else if (found.length === 0) console.log('No sites.');
  else {
    const rows = found.map((site) => [
      site.site_id,
      site.is_active ? 'on' : 'off',
      site.require_signature ? 'required' : 'not required',
      site.secret_names.join(',') || '-',
      site.kinds?.join(',') ?? 'any',
    ]);
    console.log(formatTable(['SITE', 'ACTIVE', 'SIGNATURE', 'SECRETS', 'KINDS'], rows));
  }
  return 0;
}

async function list(values: Values): Promise<number> {
  const [kind = null, ...more] = values.kind ?? [];
  if (more.length > 0) throw new UsageError('list takes one --kind');
  const calls = await withDb2((db2) =>
    db2.call<ListedCall>('calls.list_calls', {
      p_site_id: values.site ?? null,
      p_event_id: values['event-id'] ?? null,
      p_kind: kind,
      p_before: values.before === undefined ? null : readId(values.before),
      p_limit: readLimit(values.limit),
    }),
  );
  if (values.json) console.log(JSON.stringify({ calls }));
  else if (calls.length === 0) console.log('No calls.');
  else {
    const rows = calls.map((call) => [
      call.id,
      call.site_id,
      call.kind,
      call.event_id ?? '-',
      call.occurred_at,
      call.is_signed ? 'yes' : 'no',
    ]);
    console.log(formatTable(['ID', 'SITE', 'KIND', 'EVENT ID', 'OCCURRED AT', 'SIGNED'], rows));
  }
  return 0;
}

async function show(ids: string[], { json }: Values): Promise<number> {
  const wanted = ids.map(readId);
  const found = await withDb2((db2) =>
    Promise.all(wanted.map((id) => db2.call<{ id: string }>('calls.show_call', { p_id: id }))),
  );
  for (const [at, [call]] of found.entries()) {
    if (call !== undefined) console.log(JSON.stringify(call, undefined, json ? undefined : 2));
    else console.error(`There is no call ${wanted[at]}.`);
  }
  return found.every(({ length }) => length === 1) ? 0 : 1;
}

function readId(text: string): string {
  if (UUID.test(text)) return text;
  throw new UsageError(`"${text}" is not the id of a call`);
}

function readLimit(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= MAX_LIMIT) return Number(text);
  throw new UsageError(`--limit is "${text}"; it must be a number from 1 to ${MAX_LIMIT}`);
}

export const calls: Command = {
  summary: 'call events: sites, what was recorded, a sample to send',
  usage,
  run,
};
