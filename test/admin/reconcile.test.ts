import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { WITHOUT_A_TRACE } from '../support/lost_tickets.ts';
import { claimMany, sluice, standing } from '../work/support.ts';
import { auditCount, bury } from './support.ts';

describe('sluice reconcile', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, USER: 'ada' };
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  const drain = async () => assert.equal((await sluice(['work', '--once'], env).ended).code, 0);
  async function reconcile(...args: string[]) {
    const { code, stdout, stderr } = await sluice(['reconcile', '--json', ...args], env).ended;
    assert.equal(stderr, '');
    const found: { kind: string; slot_id: string; outcome: string }[] = JSON.parse(stdout).differences;
    return { code, found: found.map(({ kind, slot_id, outcome }) => `${slot_id} ${kind} ${outcome}`).sort() };
  }
  const slotsOf = async (pool: string, states: string): Promise<string[]> => {
    const { rows } = await db1.query(
      `select slot_id from public.claims where pool_id = $1 and state = any ($2::public.claim_state[]) and freed_at is null order by slot_id`,
      [pool, states],
    );
    return rows.map((row) => row.slot_id);
  };

  it('finds nothing wrong with claims at every stage of their way', async () => {
    await putOnSale(db1, 'healthy', 30);
    await claimMany(db1, 'healthy', 10);
    await drain();
    await claimMany(db1, 'healthy', 5);
    await bury(db1, 'healthy', 2);
    await db1.query(`select * from public.bridge_take(array[intake.lane_of('healthy')], '{2}', 600)`);
    assert.deepEqual(await reconcile(), { code: 0, found: [] });
    const text = await sluice(['reconcile'], env).ended;
    assert.equal(text.stdout, 'No differences: both databases tell the same story.\n');
    assert.equal(text.stderr, '', 'a pipe gets no progress bar');
  });

  it('finds each planted difference, and mends what it may without touching a ticket', async () => {
    await putOnSale(db1, 'p', 20);
    await claimMany(db1, 'p', 7);
    await db1.query('update pgmq.q_intake_queue set vt = clock_timestamp()');
    await drain();
    const [uncommitted = '', lost = '', stolen = '', ended = '', onSale = '', unknown = '', twice = ''] =
      await slotsOf('p', '{committed}');
    await claimMany(db1, 'p', 2);
    const [stranded = '', released = ''] = await slotsOf('p', '{queued}');
    const { rows: free } = await db1.query(
      `select id from public.inventory_slots where pool_id = 'p' and status = 'AVAILABLE' order by id limit 1`,
    );
    const orphan = free[0].id;

    await db1.query(`update public.claims set state = 'validated' where slot_id = $1`, [uncommitted]);
    await db2.query(`delete from public.confirmed_tickets where resource_id = $1 and ${WITHOUT_A_TRACE}`, [
      lost,
    ]);
    await db2.query(`update public.confirmed_tickets set user_id = 'thief' where resource_id = $1`, [stolen]);
    await db1.query(
      `update public.claims set state = 'released', freed_at = now(), end_reason = 'x' where slot_id = $1`,
      [ended],
    );
    await db1.query('delete from public.claims where slot_id = $1', [unknown]);
    await db1.query(`delete from public.claims where slot_id = $1`, [onSale]);
    await db1.query(`update public.inventory_slots set status = 'AVAILABLE' where id = any ($1)`, [
      [onSale, twice],
    ]);
    await db1.query(`delete from pgmq.q_intake_queue where message ->> 'resource_id' = $1`, [stranded]);
    await db1.query(
      `select intake.free_claims(array[claim_id], 'discarded', 'x') from public.claims where slot_id = $1`,
      [released],
    );
    await db1.query(
      `update public.inventory_slots set status = 'RESERVED', locked_at = now() where id = $1`,
      [orphan],
    );
    const stray = '00000000-0000-4000-8000-000000000001';
    await db2.query(
      `insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id) values ($1, 'p', 'u', $1)`,
      [stray],
    );

    const planted: [slot: string, kind: string, outcome: string][] = [
      [uncommitted, 'ticket_without_claim', 'fixed'],
      [lost, 'claim_without_ticket', 'fixed'],
      [stolen, 'ticket_of_another_claim', 'for a person'],
      [ended, 'ticket_without_claim', 'for a person'],
      [unknown, 'ticket_without_claim', 'fixed'],
      [onSale, 'ticket_on_sale', 'fixed'],
      [twice, 'slot_status', 'fixed'],
      [stranded, 'claim_without_message', 'fixed'],
      [released, 'message_of_ended_claim', 'fixed'],
      [orphan, 'slot_status', 'fixed'],
      [stray, 'ticket_without_claim', 'for a person'],
    ];
    const expected = (outcome?: string) =>
      planted.map(([slot, kind, fixed]) => `${slot} ${kind} ${outcome ?? fixed}`).sort();
    const tickets = () => db2.query('select * from public.confirmed_tickets order by resource_id');
    const before = (await tickets()).rows;

    assert.deepEqual(await reconcile(), { code: 1, found: expected('found') });
    assert.equal(await auditCount(db1, 'reconcile_fix'), 0, 'looking changes nothing');
    assert.deepEqual(await reconcile('--fix'), { code: 1, found: expected() });
    assert.deepEqual((await tickets()).rows, before);
    assert.equal(
      await auditCount(db1, 'reconcile_fix'),
      planted.filter(([, , fixed]) => fixed === 'fixed').length,
    );
    const { rows } = await db1.query(
      `select distinct actor from audit.audit_logs where action = 'reconcile_fix'`,
    );
    assert.deepEqual(rows, [{ actor: 'owner (ada)' }]);

    const left = planted.filter(([, , outcome]) => outcome !== 'fixed');
    const again = left.map(([slot, kind, outcome]) => `${slot} ${kind} ${outcome}`).sort();
    assert.deepEqual(await reconcile('--fix'), { code: 1, found: again });
    await drain();
    assert.deepEqual(await reconcile('--fix'), { code: 1, found: again });
    const { queued, dead, committed, consumed } = await standing(db1, db2, 'p');
    // Seven were tickets, and all but the one that has ended are again; the stranded claim has become one.
    assert.deepEqual(
      { queued, dead, committed, consumed },
      { queued: 0, dead: 0, committed: 7, consumed: 8 },
    );
  });

  it('gives a slot to the user who has its ticket, past a dead letter, and never puts it on sale', async () => {
    await putOnSale(db1, 'sold', 1);
    await claimMany(db1, 'sold', 1);
    const [slot = ''] = await slotsOf('sold', '{queued}');
    await db2.query(
      `insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id) values ($1, 'sold', 'zed', $1)`,
      [slot],
    );
    await db1.query('update pgmq.q_intake_queue set vt = clock_timestamp()');
    await drain();
    const discard = async (): Promise<string> => {
      const { rows } = await db1.query(
        `select d.outcome from public.list_dead_letters('sold') l, public.discard_dead_letters(array[l.msg_id], 'ada') d`,
      );
      return rows[0]?.outcome;
    };
    const sellAgain = async () =>
      (await db1.query(`select public.claim_resource_and_queue('sold', 'late') as slot`)).rows[0].slot;
    assert.equal(await discard(), 'ticket_conflict');
    assert.equal(await sellAgain(), null);
    const { found } = await reconcile('--fix');
    assert.ok(found.includes(`${slot} ticket_of_another_claim fixed`), found.join());
    assert.equal(await sellAgain(), null);
    assert.equal(await discard(), 'discarded');
    assert.equal(await sellAgain(), null);
    const { rows } = await db1.query(
      `select user_id, state from public.claims where pool_id = 'sold' order by freed_at nulls first`,
    );
    assert.deepEqual(rows[0], { user_id: 'zed', state: 'committed' });
    assert.equal(rows[1].state, 'discarded');
    assert.ok(!(await reconcile()).found.some((line) => line.startsWith(slot)), 'both tell the same story');
  });

  it('refuses a repair that does not exist', async () => {
    await assert.rejects(db1.query(`select public.reconcile_fix(gen_random_uuid(), 'burn', 'ada')`), {
      code: 'SL001',
    });
  });

  it('leaves the slot to the live claim when a ticket of an ended one turns up', async () => {
    await putOnSale(db1, 'resold', 1);
    await claimMany(db1, 'resold', 1);
    const [slot] = await slotsOf('resold', '{queued}');
    const { rows } = await db1.query(
      `select public.reconcile_fix($1, 'ticket_without_claim', 'ada', jsonb_build_object('claim_id', gen_random_uuid(), 'user_id', 'x')) as outcome`,
      [slot],
    );
    assert.equal(rows[0].outcome, 'unchanged');
  });
});
