// `sluice hosts`: the private hosts that the hooks of pools may be on.

import { withDb1 } from './db1.ts';
import { action, type Group } from './grammar.ts';
import { actor, listAction, OPTION, VARIABLES } from './operator.ts';
import { readReason } from './values.ts';

type Change = 'allow_hook_host' | 'disallow_hook_host';

async function list(json: boolean): Promise<number> {
  const rows = await withDb1((db1) =>
    db1.call<{ hook_allowed_hosts: string }>('public.hook_allowed_hosts', {}),
  );
  const hosts = rows.map(({ hook_allowed_hosts: host }) => host);
  if (json) console.log(JSON.stringify({ hosts }));
  else console.log(hosts.length === 0 ? 'No private host is allowed.' : hosts.join('\n'));
  return 0;
}

/** `said` tells what is true now, and what was true before. */
const change = (about: string, example: string, name: Change, said: readonly [now: string, before: string]) =>
  action({
    about,
    args: '<host>',
    options: { reason: OPTION.reason, json: OPTION.json },
    examples: [example],
    async run({ reason, json }, [host]) {
      const args = { p_host: host, p_actor: actor(), p_reason: readReason(reason) };
      const [row] = await withDb1((db1) => db1.call<Record<Change, boolean>>(`public.${name}`, args));
      const changed = row?.[name] === true;
      if (json) console.log(JSON.stringify({ host, changed }));
      else console.log(`${host} ${changed ? said[0] : said[1]}.`);
      return 0;
    },
  });

export const command: Group = {
  about: `The private hosts that hooks of pools may be on; the owner of DB1 keeps the list

A hook must have a public address, unless its host is on this list: a name or an address, with or without a port. The database reads
the list when a URL is stored, workers and Edge Functions when it is called.`,
  environment: { ...VARIABLES.databases, ...VARIABLES.operator },
  exits: ['when it is done', 'when it is not'],
  actions: {
    list: listAction('List the hosts', 'sluice hosts list', list),
    allow: change(
      'Allow hooks on this host, whatever its address',
      "sluice hosts allow hooks.internal:8080 --reason 'the shop in our network'",
      'allow_hook_host',
      ['may have hooks now', 'was on the list already'],
    ),
    remove: change(
      'Remove a host from the list: pools keep their URLs, and workers refuse to call it from now on',
      'sluice hosts remove hooks.internal:8080',
      'disallow_hook_host',
      ['has no hooks any more', 'was not on the list'],
    ),
  },
};
