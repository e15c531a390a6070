// `sluice calls`: which sites may send call events, what was recorded, and a sample to try it with.

import { createSiteStore, type SiteStore } from '#core/calls/operators.ts';
import type { CallSite } from '#core/calls/store.ts';
import type { Signed } from '#core/webhook/operators.ts';
import { send } from './calls_send.ts';
import { DB2_VARIABLES, requireSecrets, withDb2 } from './db2.ts';
import { action, type Group, short, UsageError } from './grammar.ts';
import { actor, listAction, OPTION, showAction } from './operator.ts';
import { type ChangeValues, readSecretNames, SENDER_OPTIONS, senderActions } from './senders.ts';
import { formatTable } from './table.ts';
import { isUuid, readReason, UUID_FORM } from './values.ts';

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

function withSites<Result>(work: (store: SiteStore) => Promise<Result>): Promise<Result> {
  return withDb2((db2) => work(createSiteStore((name, args) => db2.call(`calls.${name}`, args))));
}

type Change = (store: SiteStore, by: Signed) => Promise<CallSite>;

async function write(change: Change, { reason, json }: ChangeValues): Promise<number> {
  const by = { actor: actor(), reason: readReason(reason) };
  return showSites([await withSites((store) => change(store, by))], json);
}

function showSites(found: CallSite[], json: boolean): number {
  if (json) console.log(JSON.stringify({ sites: found }));
  else if (found.length === 0) console.log('No sites.');
  else {
    const rows = found.map((site) => [
      site.site_id,
      site.is_active ? 'on' : 'off',
      site.require_signature ? 'required' : 'not required',
      site.secret_names.join(',') || '-',
      site.kinds?.join(',') ?? 'any',
      site.on_outage,
    ]);
    console.log(formatTable(['SITE', 'ACTIVE', 'SIGNATURE', 'SECRETS', 'KINDS', 'ON OUTAGE'], rows));
  }
  return 0;
}

const ON_OUTAGE = {
  value: 'refuse|accept',
  choices: ['refuse', 'accept'],
  about: 'while DB2 is down: answer 503 (refuse), or 2xx once the inbox has it (accept)',
} as const;

const changeSite = action({
  about: 'Change what the server answers a site while DB2 is down',
  args: '<site>',
  options: { 'on-outage': ON_OUTAGE, reason: OPTION.reason, json: OPTION.json },
  examples: ['sluice calls sites change branch-7 --on-outage accept'],
  async run({ 'on-outage': on_outage, ...values }, [siteId]) {
    if (on_outage === undefined) throw new UsageError('change needs --on-outage refuse or accept');
    return write((store, by) => store.changeSite(siteId, { on_outage }, by), values);
  },
});

const addSite = action({
  about: 'Add a site: --secret-name ENV_NAME, or --unsigned',
  args: '<site>',
  options: {
    unsigned: {
      about: 'take requests without a signature too; Sluice does not recognise their second delivery',
    },
    kind: { value: 'KIND', multiple: true, about: 'a kind the site may send (default: any)' },
    'on-outage': { ...ON_OUTAGE, about: `${ON_OUTAGE.about} (default: refuse)` },
    ...SENDER_OPTIONS,
  },
  examples: ['sluice calls sites add branch-7 --secret-name BRANCH_7_SECRET --kind ring --kind hangup'],
  async run({ unsigned, kind, 'secret-name': names, 'on-outage': on_outage, ...values }, [site_id]) {
    const secret_names = readSecretNames('--secret-name', names);
    if (secret_names.length === 0 && !unsigned) throw new UsageError('add needs --secret-name or --unsigned');
    await requireSecrets(secret_names);
    const site = {
      site_id,
      secret_names,
      require_signature: !unsigned,
      kinds: kind.length === 0 ? null : kind,
      ...(on_outage !== undefined && { on_outage }),
    };
    return write((store, by) => store.addSite(site, by), values);
  },
});

const sites: Group = {
  about: 'The sites that may send call events',
  default: 'list',
  actions: {
    list: listAction('List the sites that may send call events', 'sluice calls sites list', async (json) =>
      showSites(await withSites((store) => store.allSites()), json),
    ),
    add: addSite,
    change: changeSite,
    ...senderActions({
      args: '<site>',
      path: 'calls sites',
      sample: 'branch-7',
      change: (siteId, changes, values) =>
        write((store, by) => store.changeSite(siteId, changes, by), values),
      async rotate(siteId, rotation, values) {
        await requireSecrets(rotation.secretNames);
        return write((store, by) => store.rotateSite(siteId, rotation, by), values);
      },
    }),
  },
};

const list = action({
  about: 'List calls, newest first, without their payloads',
  options: {
    site: { value: 'SITE', about: 'of this site' },
    'event-id': { value: 'ID', about: "with this id of the sender's" },
    kind: { value: 'KIND', about: 'of this kind' },
    before: { value: 'ID', about: 'those before this call' },
    limit: { range: [1, MAX_LIMIT], default: 100, about: 'at most this many' },
    json: OPTION.json,
  },
  examples: ['sluice calls list --site branch-7 --limit 20'],
  async run(values) {
    const before = values.before === undefined ? null : readId(values.before);
    const calls = await withDb2((db2) =>
      db2.call<ListedCall>('calls.list_calls', {
        p_site_id: values.site ?? null,
        p_event_id: values['event-id'] ?? null,
        p_kind: values.kind ?? null,
        p_before: before,
        p_limit: values.limit,
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
  },
});

async function show(ids: readonly string[], json: boolean): Promise<number> {
  const wanted = ids.map(readId);
  const found = await withDb2((db2) =>
    Promise.all(wanted.map((id) => db2.call<{ id: string }>('calls.show_call', { p_id: id }))),
  );
  for (const [at, [call]] of found.entries()) {
    if (call !== undefined) console.log(JSON.stringify(call, undefined, json ? undefined : 2));
    else console.error(`The call ${wanted[at]} does not exist.`);
  }
  return found.every(({ length }) => length === 1) ? 0 : 1;
}

function readId(text: string): string {
  if (isUuid(text)) return text;
  throw new UsageError(`"${short(text)}" is not the id of a call, ${UUID_FORM}`);
}

export const command: Group = {
  about: 'Which sites may send call events, what was recorded, and a sample to try it with',
  environment: DB2_VARIABLES,
  exits: ['when all is done', 'when something was not there or was refused'],
  actions: {
    sites,
    list,
    show: showAction(
      'Show all that is known about some calls',
      '<id> …',
      'sluice calls show 0198c0de-0000-7000-8000-000000000001',
      show,
    ),
    send,
  },
};
