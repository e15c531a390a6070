// A claim ends while its ticket is being written, in two real sessions and both orders. The second session waits for the
// first and then sees its result, so one claim never has both a ticket and a tombstone. The controls leave the placeholder
// out, and get both.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Session, waitsFor } from '../support/sessions.ts';
import { useLedger } from '../support/suite.ts';

describe('a ticket and a tombstone of one claim', () => {
  const { observer, worker, ender, gate } = useLedger('observer', 'worker', 'ender', 'gate');
  let made = 0;

  type Claim = { claim_id: string; resource_id: string; pool_id: string; user_id: string; cause: string };
  const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const newClaim = (): Claim => {
    const number = ++made;
    return {
      claim_id: uuid(number),
      resource_id: uuid(1_000_000 - number),
      pool_id: 'p',
      user_id: 'ann',
      cause: 'released',
    };
  };
  const finalize = (claims: Claim[]) =>
    worker
      .rows<{ outcome: string }>('select outcome from public.finalize_batch($1) order by ordinal', [
        JSON.stringify(claims),
      ])
      .then((rows) => rows.map(({ outcome }) => outcome).join());
  const end = (claims: Claim[], session = ender) =>
    session
      .rows<{ outcome: string }>('select outcome from public.void_tickets($1)', [JSON.stringify(claims)])
      .then((rows) => rows.map(({ outcome }) => outcome).join());
  const standing = async ({ claim_id }: Claim) =>
    (
      await observer.rows<{ kind: string }>(
        `select 'ticket' as kind from public.confirmed_tickets where claim_id = $1
         union all select 'tombstone' from public.voided_tickets where claim_id = $1`,
        [claim_id],
      )
    ).map(({ kind }) => kind);
  /** `first` works in an open transaction, `second` begins, and the first ends as told. Without a wait the second is through. */
  const race = async <One, Other>(
    [first, one]: [Session, () => Promise<One>],
    [second, other]: [Session, () => Promise<Other>],
    how: 'commit' | 'rollback',
    waits = true,
  ): Promise<[One, Other]> => {
    await first.client.query('begin');
    const before = await one();
    const after = other();
    if (waits) await waitsFor(observer, second, first);
    else await after;
    await first.client.query(how);
    return [before, await after];
  };

  test('the worker first: the claim has its ticket, and is not ended', async () => {
    const claim = newClaim();
    const answers = await race([worker, () => finalize([claim])], [ender, () => end([claim])], 'commit');
    assert.deepEqual(answers, ['committed', 'ticket']);
    assert.deepEqual(await standing(claim), ['ticket']);
    assert.equal(await end([claim]), 'ticket', 'the second time too');
  });

  test('the worker first, and it fails: the claim is voided for good', async () => {
    const claim = newClaim();
    const answers = await race([worker, () => finalize([claim])], [ender, () => end([claim])], 'rollback');
    assert.deepEqual(answers, ['committed', 'voided']);
    assert.equal(await finalize([claim]), 'voided');
    assert.equal(await end([claim]), 'voided', 'the second time too');
    assert.deepEqual(await standing(claim), ['tombstone']);
  });

  test('the end first: the worker is told, and its neighbours in the batch have their tickets', async () => {
    const [claim, neighbour] = [newClaim(), newClaim()];
    const answers = await race(
      [ender, () => end([claim])],
      [worker, () => finalize([claim, neighbour])],
      'commit',
    );
    assert.deepEqual(answers, ['voided', 'voided,committed']);
    assert.deepEqual([await standing(claim), await standing(neighbour)], [['tombstone'], ['ticket']]);
    assert.equal(await finalize([claim, neighbour]), 'voided,already');
  });

  test('the end first, and it fails: the claim has its ticket', async () => {
    const claim = newClaim();
    const answers = await race([ender, () => end([claim])], [worker, () => finalize([claim])], 'rollback');
    assert.deepEqual(answers, ['voided', 'committed']);
    assert.deepEqual(await standing(claim), ['ticket']);
  });

  test('the end first, met by a batch that another ticket has sent the slow way', async () => {
    const [claim, sold] = [newClaim(), newClaim()];
    await finalize([sold]);
    const answers = await race(
      [ender, () => end([claim])],
      [worker, () => finalize([sold, claim])],
      'commit',
    );
    assert.deepEqual(answers, ['voided', 'already,voided']);
    assert.deepEqual(await standing(claim), ['tombstone']);
  });

  test('one by one, as pools with a function of their own commit, the worker gets SL021', async () => {
    const claim = newClaim();
    await end([claim]);
    await assert.rejects(worker.rows('select public.finalize_transaction($1)', [JSON.stringify(claim)]), {
      code: 'SL021',
    });
  });

  test('many at once, crossed: both wait for each other in one order, and neither is a deadlock', async () => {
    // The order of the claims' ids is the reverse of that of their slots.
    const claims = [newClaim(), newClaim(), newClaim()];
    await gate.client.query('begin');
    await end([claims[1] as Claim], gate);
    const works = [finalize(claims)];
    await waitsFor(observer, worker, gate);
    works.push(end(claims.toReversed()));
    await waitsFor(observer, ender, worker);
    await gate.client.query('rollback');
    assert.deepEqual(await Promise.all(works), ['committed,committed,committed', 'ticket,ticket,ticket']);
  });

  for (const level of ['repeatable read', 'serializable'])
    test(`neither is written by a transaction that could not see the other (${level})`, async () => {
      const claim = newClaim();
      for (const work of [() => finalize([claim]), () => end([claim], worker)]) {
        await worker.client.query(`begin isolation level ${level}`);
        await assert.rejects(work(), { code: 'SL015' });
        await worker.client.query('rollback');
      }
      assert.deepEqual(await standing(claim), []);
    });

  describe('without the placeholder', () => {
    let original: string;
    before(async () => {
      original = await observer.value<string>(`select pg_get_functiondef('public.place_claims'::regproc)`);
      const from = /with placed as \([\s\S]*?into v_placed from placed p;/;
      assert.match(original, from);
      await observer.client.query(
        original.replace(
          from,
          `v_placed := array(select i.claim_id from jsonb_to_recordset(p_claims) as i (claim_id uuid)
             where not exists (select from public.confirmed_tickets t where t.claim_id = i.claim_id));`,
        ),
      );
    });
    after(() => observer.client.query(original));

    test('control: the worker first ends as a ticket and a tombstone', async () => {
      const claim = newClaim();
      await race([worker, () => finalize([claim])], [ender, () => end([claim])], 'commit', false);
      assert.deepEqual(await standing(claim), ['ticket', 'tombstone']);
    });

    test('control: the end first ends as a ticket and a tombstone', async () => {
      const claim = newClaim();
      await race([ender, () => end([claim])], [worker, () => finalize([claim])], 'commit', false);
      assert.deepEqual(await standing(claim), ['ticket', 'tombstone']);
    });
  });
});
