// The door's side of the inbox on cells in memory: which cell takes a delivery, when DB2 is not asked, and what a secret is
// worth that only DB2 knew.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HttpError } from '#core/errors.ts';
import { Inbox } from '#core/inbox/inbox.ts';
import type { InboxMessage } from '#core/inbox/message.ts';
import { Reach } from '#core/inbox/reach.ts';
import type { InboxCell } from '#core/inbox/store.ts';
import { NO_METRICS } from '#core/ports.ts';
import { type FoundSecret, judgeSecret } from '#core/webhook/secrets.ts';
import { memoryLog } from './support.ts';

const away = () => Object.assign(new Error('no connection'), { code: 'ECONNREFUSED' });
const refused = () => Object.assign(new Error('not these'), { code: 'SL001', severity: 'ERROR' });
const silent = () => new Promise<never>(() => undefined);
const READ_AT = '2026-02-24T10:00:00Z';

function memoryCell(name: string) {
  const state = {
    fails: undefined as (() => unknown) | undefined,
    failsFor: undefined as { id: string; error: () => unknown } | undefined,
    asked: 0,
    accepted: [] as string[],
  };
  const answer = async <Row>(row: Row): Promise<Row> => {
    state.asked++;
    if (state.fails !== undefined) throw state.fails();
    return row;
  };
  const cell: InboxCell = {
    name,
    accept: async (messages) => {
      await answer(undefined);
      const ids = messages.map(idOf);
      if (state.failsFor !== undefined && ids.includes(state.failsFor.id)) throw state.failsFor.error();
      state.accepted.push(...ids);
    },
    copiedDoor: (_kind, door) =>
      answer({ door: door === 'known' ? ({ name } as never) : null, read_at: READ_AT }),
    copiedSecret: (secret) =>
      answer({
        is_allowed: secret !== 'FORBIDDEN',
        in_vault: secret.endsWith('VAULT'),
        value: secret.startsWith('CELL') ? 'of the vault of DB1' : null,
        read_at: READ_AT,
      }),
  };
  return { cell, state };
}

const idOf = ({ ids }: InboxMessage) => ids[0] ?? '';
const message = (id: string) => (): InboxMessage => ({
  kind: 'call',
  door: 'site',
  received_at: READ_AT,
  ids: [id],
  call: { siteId: 'site', eventId: id, kind: 'ring', payload: '{}', occurredAt: READ_AT, signatureHash: 'h' },
});

function open() {
  const one = memoryCell('one');
  const two = memoryCell('two');
  const clock = { nowMs: 1_000_000 };
  const inbox = new Inbox({
    cells: [one.cell, two.cell],
    toBase64: () => '',
    now: () => clock.nowMs,
    log: memoryLog(),
    metrics: NO_METRICS,
  });
  const record = (id: string, work: () => Promise<string>) => inbox.record(clock.nowMs, work, message(id));
  return { inbox, one: one.state, two: two.state, clock, record };
}

const reject = (error: () => unknown) => () => Promise.reject(error());

describe('the inbox of a door', () => {
  it('takes nothing that DB2 records, and nothing that DB2 refuses', async () => {
    const { record, one, two } = open();
    assert.equal(await record('a', async () => 'recorded'), 'recorded');
    await assert.rejects(record('b', reject(refused)), /not these/);
    assert.deepEqual([one.accepted, two.accepted], [[], []]);
  });

  it('takes what DB2 cannot: the first cell, else the next, which is then the first to be asked', async () => {
    const { record, one, two } = open();
    assert.equal(await record('a', reject(away)), undefined);
    one.fails = away;
    assert.equal(await record('b', reject(away)), undefined);
    const { asked } = one;
    assert.equal(await record('c', reject(away)), undefined);
    assert.deepEqual([one.accepted, two.accepted], [['a'], ['b', 'c']]);
    assert.equal(one.asked, asked, 'a cell that is known to be away is not asked while another takes it');
    two.fails = away;
    await assert.rejects(record('d', reject(away)), /no connection|reached/);
    one.fails = undefined;
    assert.equal(await record('e', reject(away)), undefined, 'where all are away, all are asked');
    assert.deepEqual(one.accepted, ['a', 'e']);
  });

  it('takes what waited in vain: a lock, and a server that has no room', async () => {
    const { record, one } = open();
    await record('busy', () => Promise.reject(new HttpError('busy')));
    await record('full', () => Promise.reject(new HttpError('overloaded')));
    assert.deepEqual(one.accepted, ['busy', 'full']);
    await assert.rejects(
      record('stopping', () => Promise.reject(new HttpError('shutting_down'))),
      /stopping/,
    );
  });

  it('asks DB2 after all where no cell answers: it may be back, although a moment ago it was away', async () => {
    const { inbox, record, one, two } = open();
    assert.equal(await record('a', reject(away)), undefined);
    one.fails = away;
    two.fails = away;
    assert.equal(await record('b', async () => 'recorded'), 'recorded');
    assert.equal(await inbox.findDoor('endpoint', 'known', async () => 'of DB2' as never), 'of DB2');
    await assert.rejects(record('c', reject(away)), /no connection/);
  });

  it('refuses the one message that a cell cannot store, and takes its neighbours', async () => {
    const { record, one } = open();
    const unstorable = () => Object.assign(new Error('unstorable'), { code: '22P05', severity: 'ERROR' });
    one.failsFor = { id: 'bad', error: unstorable };
    const ends = await Promise.allSettled(['a', 'bad', 'b'].map((id) => record(id, reject(away))));
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(one.accepted.sort(), ['a', 'b']);
  });

  it('is where doors are looked up while DB2 is away, and knows which do not exist', async () => {
    const { inbox, one } = open();
    assert.equal(await inbox.findDoor('endpoint', 'known', async () => 'of DB2' as never), 'of DB2');
    assert.deepEqual(await inbox.findDoor('endpoint', 'known', reject(away)), { name: 'one' });
    assert.equal(await inbox.findDoor('endpoint', 'unknown', reject(away)), undefined);
    one.fails = refused;
    await assert.rejects(inbox.findDoor('endpoint', 'known', reject(away)), /not these/);
  });

  it('remembers the values of secrets that DB2 has told, and refuses no signature for one that it never heard', async () => {
    const { inbox } = open();
    let answer: () => Promise<FoundSecret> = async () => ({ is_allowed: true, value: 'of the vault of DB2' });
    const find = inbox.findSecret(() => answer());
    for (const name of ['TOLD_VAULT', 'CELL_TOLD_VAULT', 'TOLD_SINCE']) await find(name);
    answer = reject(away) as never;
    for (const name of ['TOLD_VAULT', 'CELL_TOLD_VAULT'])
      assert.deepEqual(
        judgeSecret(await find(name), 'of the environment', 16),
        { value: 'of the vault of DB2', mayBeOld: true },
        'DB2’s Vault comes first, and may have another value since',
      );
    assert.deepEqual(judgeSecret(await find('CELL_VAULT'), 'of the environment', 16), {
      value: 'of the vault of DB1',
      mayBeOld: true,
    });
    assert.deepEqual(judgeSecret(await find('TOLD_VAULT'), undefined, 32), {
      fault: 'too_short',
      mayBeOld: true,
    });
    for (const name of ['NEVER', 'CELL_NEVER'])
      assert.deepEqual(
        judgeSecret(await find(name), 'of the environment', 16),
        { value: 'of the environment' },
        'as with DB2, whose Vault has none',
      );
    for (const name of ['UNTOLD_VAULT', 'TOLD_SINCE']) {
      const found = await find(name);
      assert.throws(() => judgeSecret(found, 'of the environment', 16), { name: 'HttpError' }, name);
    }
    assert.deepEqual(judgeSecret(await find('FORBIDDEN'), 'of the environment', 16), {
      fault: 'not_allowed',
    });
    const never = await find('NEVER');
    assert.throws(() => judgeSecret(never, undefined, 16), { name: 'HttpError' });
    const control = { is_allowed: true, value: null };
    assert.deepEqual(judgeSecret(control, undefined, 16), { fault: 'not_set' });
  });
});

describe('the reach of DB2', () => {
  const clock = { nowMs: 0 };
  const tell: boolean[] = [];
  const start = () => {
    clock.nowMs = 1_000_000;
    tell.length = 0;
    return new Reach(
      () => clock.nowMs,
      (isAway) => void tell.push(isAway),
    );
  };
  const isRefused = (asked: Promise<unknown>) => assert.rejects(asked, { name: 'HttpError' });

  it('asks nothing while DB2 is away, then by one try at a time, until it answers', async () => {
    const reach = start();
    await assert.rejects(reach.try(1_000, reject(away)));
    let asked = 0;
    const ask = async () => ++asked;
    await isRefused(reach.try(1_000, ask));
    assert.equal(asked, 0);
    clock.nowMs += 500;
    let answer: (value: string) => void = () => undefined;
    const probe = reach.try(1_000, () => new Promise<string>((resolve) => (answer = resolve)));
    await isRefused(reach.try(1_000, ask));
    assert.equal(asked, 0, 'a second try does not join the first');
    answer('here');
    assert.equal(await probe, 'here');
    assert.equal(await reach.try(1_000, ask), 1);
    assert.deepEqual(tell, [true, false]);
  });

  it('takes a silence for an outage, unless DB2 has answered another call meanwhile', async () => {
    const stuck = start();
    const slow = stuck.try(5, silent);
    clock.nowMs += 1;
    await stuck.try(1_000, async () => 'answered');
    await isRefused(slow);
    assert.deepEqual(tell, [], 'one delivery is stuck');
    const alone = start();
    await isRefused(alone.try(5, silent));
    assert.deepEqual(tell, [true]);
  });

  it('is not lost by a refusal, nor found by what was never asked', async () => {
    const reach = start();
    await assert.rejects(reach.try(1_000, reject(refused)), /not these/);
    assert.deepEqual(tell, []);
    await assert.rejects(reach.try(1_000, reject(away)));
    clock.nowMs += 500;
    await isRefused(reach.try(1_000, () => Promise.reject(new HttpError('overloaded'))));
    assert.deepEqual(tell, [true], 'our own queue was full: DB2 has said nothing');
  });
});
