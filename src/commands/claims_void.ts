// `sluice claims void`: an operator takes tickets back, with or without the money.

import { setTimeout as sleep } from 'node:timers/promises';
import { isDone } from '#core/console/outcomes.ts';
import type { VoidResult } from '#core/console/void_claims.ts';
import { AdminClient } from '../admin/client.ts';
import { action, short, UsageError } from './grammar.ts';
import { confirm, OPTION, readConnection } from './operator.ts';
import { formatTable } from './table.ts';
import { isUuid, readReason, UUID_FORM } from './values.ts';

/** The courier needs about a second while both databases answer. */
const WAIT_MS = 5_000;
const LOOK_EVERY_MS = 250;

type Ask = (isDryRun: boolean) => Promise<VoidResult[]>;

export const voidAction = action({
  about: `Take tickets back: each is void from then on, and its slot goes on sale again

Shows what it would do, and asks. The ledger records the request with its audit row. A worker carries it out, in about a second
while both databases answer. --refund pays the price of each claim back, also of one that was voided without it before. Other claims
of the same order stay.`,
  args: '<id> …',
  options: {
    reason: OPTION.reason,
    refund: { about: 'pay the price of each claim back' },
    'dry-run': { about: 'say what would be done' },
    yes: OPTION.yes,
    json: OPTION.json,
  },
  examples: ["sluice claims void 0198c0de-0000-7000-8000-000000000001 --reason 'rain' --refund"],
  async run({ reason, refund, 'dry-run': isDryRun, yes, json }, ids) {
    for (const id of ids)
      if (!isUuid(id)) throw new UsageError(`"${short(id)}" is not the id of a claim, ${UUID_FORM}`);
    if (reason === undefined && !isDryRun)
      throw new UsageError('void needs a --reason: the audit log keeps it');
    const why = readReason(reason);
    const body = { claim_ids: ids, refund, ...(why !== null && { reason: why }) };
    const api = new AdminClient(readConnection(process.env));
    const ask: Ask = async (dry_run) =>
      (await api.post<{ results: VoidResult[] }>('/admin/claims/void', { ...body, dry_run })).results;
    const plan = await ask(true);
    const wanted = plan.filter(isDone).length;
    if (isDryRun || wanted === 0) return report(plan, json);
    if (!yes) {
      console.error(tableOf(plan));
      const money = refund ? 'and pay back what they cost' : 'and keep the money';
      if (!(await confirm(`Void ${wanted === 1 ? 'this claim' : `${wanted} claims`} ${money}?`))) {
        console.error('Nothing was changed.');
        return 1;
      }
    }
    return report(await untilVoided(ask, await ask(false)), json);
  },
});

/** Each result, `voided` once both databases say so. */
async function untilVoided(ask: Ask, results: readonly VoidResult[]): Promise<readonly VoidResult[]> {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    // They are requested, whatever the look meets.
    const looked = await ask(true).catch(() => []);
    const now = new Map(looked.map(({ claim_id, outcome }) => [claim_id, outcome]));
    const isVoided = ({ claim_id, outcome }: VoidResult) =>
      outcome === 'void_requested' && now.get(claim_id) === 'already_voided';
    const ends = results.map((one) => (isVoided(one) ? { ...one, outcome: 'voided' } : one));
    if (Date.now() > deadline || ends.every(({ outcome }) => outcome !== 'void_requested')) return ends;
    await sleep(LOOK_EVERY_MS);
  }
}

function report(results: readonly VoidResult[], asJson: boolean): number {
  console.log(asJson ? JSON.stringify({ results }) : tableOf(results));
  const waiting = results.filter(({ outcome }) => outcome === 'void_requested').length;
  if (waiting > 0 && !asJson)
    console.error(`${waiting} are still on their way: a worker voids them when both databases answer.`);
  return results.every(isDone) ? 0 : 1;
}

const tableOf = (results: readonly VoidResult[]): string =>
  formatTable(
    ['CLAIM', 'OUTCOME'],
    results.map(({ claim_id, outcome }) => [claim_id, outcome]),
  );
