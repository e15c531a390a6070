// Questions to both databases after a fuzz, each of which must return no rows.

import { openClient } from '../../server/support.ts';

type Check = readonly [db: 0 | 1, what: string, sql: string];

export const CHECKS: readonly Check[] = [
  [
    0,
    'a slot on the manifest is missing from the cache',
    `select m.slot_id from public.slot_manifest m
     where not exists (select from public.inventory_slots s where s.id = m.slot_id)`,
  ],
  [
    0,
    'a pool counts other slots than it has',
    `select t.pool_id from intake.pool_totals t
     where t.slots <> (select count(*) from public.slot_manifest m where m.pool_id = t.pool_id)`,
  ],
  [
    0,
    'a slot has two live owners',
    'select slot_id from public.claims where freed_at is null group by slot_id having count(*) > 1',
  ],
  [
    0,
    'a live claim has a slot that is on sale',
    `select c.claim_id from public.claims c join public.inventory_slots s on s.id = c.slot_id
     where c.freed_at is null and s.status = 'AVAILABLE'`,
  ],
  [
    0,
    'a slot is taken and no live claim has it',
    `select s.id from public.inventory_slots s where s.status <> 'AVAILABLE'
     and not exists (select from public.claims c where c.slot_id = s.id and c.freed_at is null)`,
  ],
  [
    0,
    'a claim waits without a message',
    `select c.claim_id from public.claims c where c.state = 'queued'
     and not exists (select from pgmq.q_intake_queue q where q.msg_id = c.msg_id)`,
  ],
  [
    1,
    'an event that is to be processed has nothing to process',
    `select e.id from public.webhook_events e
     where e.status = 'pending' and e.payload is null and e.raw_body is null and e.body_id is null`,
  ],
  [
    1,
    'a quarantined event has lost its bytes',
    `select e.id from public.webhook_events e
     where e.error like 'quarantine%' and e.raw_body is null and e.body_id is null`,
  ],
  [
    1,
    'a call was recorded twice',
    `select site_id, signature_hash from public.calls where signature_hash is not null
     group by site_id, signature_hash having count(*) > 1`,
  ],
];

/** One line for each check that found something. */
export async function inconsistencies(urls: readonly [string, string]): Promise<string[]> {
  const clients = await Promise.all(urls.map(openClient));
  try {
    const found: string[] = [];
    for (const [db, what, sql] of CHECKS) {
      const { rowCount } = (await clients[db]?.query(sql)) ?? { rowCount: null };
      if (rowCount !== 0) found.push(`${what}: ${rowCount} times`);
    }
    return found;
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}
