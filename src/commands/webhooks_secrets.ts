// `sluice webhooks secrets`: the names of secrets that endpoints and call sites may use. The owner of DB2 keeps the list.

import { blameOf } from '#core/failure.ts';
import { SECRET_FAULTS, type SecretFault } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { StackError } from '../failure.ts';
import { secretUses } from '../webhook/secret_users.ts';
import { knownSecrets, withDb2 } from './db2.ts';
import { type Action, action, type Group } from './grammar.ts';
import { actor, listAction, OPTION } from './operator.ts';
import { readSecretNames } from './senders.ts';
import { formatTable } from './table.ts';
import { readReason } from './values.ts';

interface ListedName {
  readonly name: string;
  /** Endpoints and call sites that are switched on. */
  readonly used_by: readonly string[];
  /** As seen from here; null where nothing uses it. */
  readonly fault: SecretFault | null;
}

async function listNames(db2: Database): Promise<ListedName[]> {
  const names = await db2.call<{ name: string }>('webhook.list_secret_names', {});
  const uses = await secretUses(db2, knownSecrets());
  return names.map(({ name }) => {
    const own = uses.filter(({ secret }) => secret === name);
    const bad = own.find(({ read }) => 'fault' in read)?.read;
    return { name, used_by: own.map(({ user }) => user), fault: bad && 'fault' in bad ? bad.fault : null };
  });
}

async function list(json: boolean): Promise<number> {
  const names = await withDb2(listNames);
  if (json) console.log(JSON.stringify({ secret_names: names }));
  else if (names.length === 0) console.log('No names.');
  else {
    const rows = names.map(({ name, used_by, fault }) => [
      name,
      used_by.join(',') || '-',
      fault === null ? '-' : SECRET_FAULTS[fault],
    ]);
    console.log(formatTable(['NAME', 'USED BY', 'TROUBLE HERE'], rows));
  }
  return 0;
}

type Change = 'allow_secret' | 'remove_secret';

/** `said` tells what is true now, and what was true before. */
function change(
  about: string,
  example: string,
  name: Change,
  said: readonly [now: string, before: string],
): Action {
  return action({
    about,
    args: '<name>',
    options: { reason: OPTION.reason },
    examples: [example],
    async run({ reason }, [secretName]) {
      readSecretNames('a name', [secretName]);
      const args = { p_name: secretName, p_actor: actor(), p_reason: readReason(reason) };
      const [row] = await withDb2((db2) =>
        db2.call<Record<Change, boolean>>(`webhook.${name}`, args).catch(explainDenied),
      );
      console.log(`${secretName} ${row?.[name] === true ? said[0] : said[1]}.`);
      return 0;
    },
  });
}

function explainDenied(error: unknown): never {
  if (blameOf(error) !== 'denied') throw error;
  throw new StackError(
    'only the owner of DB2 changes the list of secrets',
    "give the owner's address as DB2_URL",
    error,
  );
}

export const secrets: Group = {
  about: 'The names of secrets that endpoints and call sites may use; the owner of DB2 keeps the list',
  default: 'list',
  actions: {
    list: listAction('List the names, and what uses them', 'sluice webhooks secrets list', list),
    allow: change(
      'Let endpoints and call sites use a secret of this name',
      'sluice webhooks secrets allow STRIPE_EU_SECRET',
      'allow_secret',
      ['may be used now', 'was on the list already'],
    ),
    remove: change(
      'Take a name off the list: servers stop using that secret within a second',
      'sluice webhooks secrets remove STRIPE_EU_SECRET',
      'remove_secret',
      ['is not used any more', 'was not on the list'],
    ),
  },
};
