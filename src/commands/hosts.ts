// `sluice hosts`: the private hosts that the hooks of pools may be on.

import { withIntakes } from './db1.ts';
import { action, type Group } from './grammar.ts';
import { actor, listAction, OPTION, VARIABLES } from './operator.ts';
import { readReason } from './values.ts';

type Change = 'allow_hook_host' | 'disallow_hook_host';

/** The hosts that some cell allows, each with the cells that do. */
async function readHosts(): Promise<{
  hosts: Map<string, string[]>;
  isSame: (cells: readonly string[]) => boolean;
}> {
  return withIntakes(async (intakes) => {
    const hosts = new Map<string, string[]>();
    for (const { name, call } of intakes)
      for (const { hook_allowed_hosts: host } of await call<{ hook_allowed_hosts: string }>(
        'hook_allowed_hosts',
        {},
      ))
        hosts.set(host, [...(hosts.get(host) ?? []), name]);
    return { hosts, isSame: (cells) => cells.length === intakes.length };
  });
}

async function list(json: boolean): Promise<number> {
  const { hosts, isSame } = await readHosts();
  const differing = [...hosts].filter(([, cells]) => !isSame(cells));
  if (json)
    console.log(
      JSON.stringify({
        hosts: [...hosts.keys()],
        ...(differing.length > 0 && { only_in: Object.fromEntries(differing) }),
      }),
    );
  else if (hosts.size === 0) console.log('No private host is allowed.');
  else
    for (const [host, cells] of hosts)
      console.log(isSame(cells) ? host : `${host} (only in cell ${cells.join(', ')})`);
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
      const changed = await withIntakes(async (intakes) => {
        let isNew = false;
        for (const { call } of intakes) {
          const [row] = await call<Record<Change, boolean>>(name, args);
          isNew ||= row?.[name] === true;
        }
        return isNew;
      });
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
