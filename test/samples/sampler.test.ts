import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { IntakeLook, LedgerLook, LiveSample } from '#core/console/sample.ts';
import { NO_METRICS } from '#core/ports.ts';
import { ConnectionLost } from '../../src/db/lost.ts';
import { BreakerMarks } from '../../src/samples/breakers.ts';
import type { NewMark } from '../../src/samples/outages.ts';
import { Sampler, type TakeArguments } from '../../src/samples/sampler.ts';
import { memoryLog } from '../core/support.ts';

const INTAKE: IntakeLook = {
  enqueued: 0,
  queue_depth: 0,
  oldest_msg_sec: null,
  dlq_depth: 0,
  inbox: { accepted: 0, waiting: 0, oldest_sec: null, dead_letters: 0, doors_age_sec: 1 },
  orders: { held: 0, paying: 0, past_bound: 0, past_bound_sec: null, to_close: 0 },
  pools: [],
  bridge_workers: 0,
};
const LEDGER: LedgerLook = {
  tickets: 0,
  webhooks: {
    backlog: 0,
    oldest_sec: null,
    dead_letters: 0,
    payments_without_user: 0,
    silent_disputes: 0,
    recorded: 0,
  },
  calls: 0,
  orders: {
    outbox: {
      settle: { due: 0, oldest_sec: 0, dead_letters: 0 },
      void: { due: 0, oldest_sec: 0, dead_letters: 0 },
    },
    refunds: { due: 0, review: 0, failed: 0 },
    refunds_oldest_sec: 0,
    braked: 0,
    decisions: { funds: 0, refund: 0, void: 0, ignored: 0 },
  },
  webhook_workers: 0,
};
/** Long after its start, so the server has stopped telling its deploy. */
const LATER_MS = 600_000;

function open(cells?: readonly string[]) {
  const told: { intake: TakeArguments[]; ledger: TakeArguments[] } = { intake: [], ledger: [] };
  const state = { nowMs: 0, ledger: async (): Promise<LedgerLook | null> => LEDGER, intake: INTAKE };
  const published: LiveSample[] = [];
  const sampler = new Sampler(
    {
      async takeIntake(args) {
        told.intake.push(args);
        return state.intake;
      },
      takeLedger(args) {
        told.ledger.push(args);
        return state.ledger();
      },
      ...(cells && { cells }),
      release: '1.0',
      clock: () => state.nowMs,
      log: memoryLog(),
    },
    (sample) => published.push(sample),
  );
  const tick = async () => {
    state.nowMs += 2_000;
    return sampler.tick();
  };
  const lastTold = (): readonly NewMark[] => told.intake.at(-1)?.p_marks ?? [];
  return { told, state, published, tick, lastTold };
}

const away = () => Promise.reject(new ConnectionLost('away'));

describe('the sampler', () => {
  it('tells of what runs when it starts, and takes samples by its clock', async () => {
    const { told, tick } = open();
    await tick();
    assert.deepEqual(told.intake, [
      {
        p_marks: [{ kind: 'deploy', subject: '1.0', began_ms: 0, ended_ms: 0 }],
        p_at: '1970-01-01T00:00:02.000Z',
      },
    ]);
    assert.deepEqual(told.ledger, told.intake);
  });

  it('tells a database of the outage of the other: after two misses, while it lasts, and of its end', async () => {
    const { state, tick, lastTold, told } = open();
    state.nowMs = LATER_MS;
    await tick();
    assert.deepEqual(told.intake.at(-1)?.p_marks, undefined);
    state.ledger = away;
    const first = await tick();
    assert.deepEqual([first.db1.ok, first.db2.ok], [true, false]);
    assert.equal(first.db2.away_since, new Date(LATER_MS + 4_000).toISOString());
    await tick();
    assert.deepEqual(lastTold(), [], 'one miss is a busy machine');
    await tick();
    const since = { kind: 'outage', subject: 'DB2', began_ms: LATER_MS + 4_000 };
    assert.deepEqual(lastTold(), [{ ...since, ended_ms: null }]);
    state.ledger = async () => LEDGER;
    await tick();
    await tick();
    assert.deepEqual(lastTold(), [{ ...since, ended_ms: LATER_MS + 10_000 }]);
    assert.deepEqual(told.ledger.at(-1)?.p_marks, lastTold(), 'the one that was away hears of it too');
    state.nowMs += 120_000;
    await tick();
    await tick();
    assert.deepEqual(lastTold(), [], 'not for ever');
  });

  it('does not call a fault of ours an outage', async () => {
    const { state, tick, lastTold } = open();
    state.nowMs = LATER_MS;
    state.ledger = () => Promise.reject(Object.assign(new Error('no such function'), { code: '42883' }));
    for (let times = 0; times < 4; times++) await tick();
    assert.deepEqual(lastTold(), []);
  });

  it('names the cell that is away, where there are several', async () => {
    const { state, tick, lastTold } = open(['west', 'east']);
    state.nowMs = LATER_MS;
    state.intake = {
      ...INTAKE,
      cells: [
        { name: 'west', ok: true },
        { name: 'east', ok: false },
      ],
    };
    for (let times = 0; times < 3; times++) await tick();
    assert.deepEqual(
      lastTold().map(({ subject }) => subject),
      ['cell east'],
    );
  });

  it('does not ask again while a database is silent, and shows it as away', async () => {
    const { state, tick, told, published } = open();
    let answer = (_: LedgerLook) => {};
    const silence = new Promise<LedgerLook>((resolve) => {
      answer = resolve;
    });
    state.ledger = () => silence;
    const first = await tick();
    // Whole milliseconds are told.
    await pause(5);
    const second = await tick();
    assert.deepEqual([first.db1.ok, first.db2.ok, second.db2.ok], [true, false, false]);
    assert(second.db2.ms > first.db2.ms, 'one can see for how long');
    assert.equal(told.ledger.length, 1);
    answer(LEDGER);
    await silence;
    assert.equal((await tick()).db2.ok, true);
    assert.equal(published.length, 3);
  });
});

describe('breakers', () => {
  const METRIC = 'sluice_bridge_breaker_open';

  it('are marks from the first worker that leaves a target alone to the last that does not', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    const marks = new BreakerMarks();
    const metrics = marks.watching(NO_METRICS);
    metrics.count(METRIC, { target: 'hooks.example' });
    metrics.count('sluice_other', { target: 'not a breaker' });
    const open = { kind: 'breaker', subject: 'hooks.example', began_ms: 1_000_000 };
    assert.deepEqual(marks.due(Date.now()), [{ ...open, ended_ms: null }]);
    marks.told(marks.due(Date.now()), Date.now());
    assert.deepEqual(marks.due(Date.now()), [], 'told once');
    t.mock.timers.tick(30_000);
    assert.deepEqual(marks.due(Date.now()), [{ ...open, ended_ms: null }], 'and again while it lasts');
    metrics.count(METRIC, { target: 'hooks.example' });
    metrics.count(METRIC, { target: 'hooks.example' }, -1);
    metrics.count(METRIC, { target: 'hooks.example' }, -1);
    const ended = [{ ...open, ended_ms: 1_030_000 }];
    assert.deepEqual(marks.due(Date.now()), ended);
    marks.told(ended as NewMark[], Date.now());
    t.mock.timers.tick(60_000);
    assert.deepEqual(marks.due(Date.now()), []);
  });

  it('are closed by the end of their process, once', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    const marks = new BreakerMarks();
    marks.watching(NO_METRICS).count(METRIC, { target: 'hooks.example' });
    marks.told(marks.due(Date.now()), Date.now());
    t.mock.timers.tick(1_000);
    marks.end(Date.now());
    const due = marks.due(Date.now());
    assert.deepEqual(
      due.map(({ subject, ended_ms }) => [subject, ended_ms]),
      [['hooks.example', 1_001_000]],
    );
    marks.told(due, Date.now());
    assert.deepEqual(marks.due(Date.now()), []);
  });

  it('say why, and say it again when the cause is another; of a target that is well nothing is told', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
    const marks = new BreakerMarks();
    const metrics = marks.watching(NO_METRICS);
    const told = () => {
      const due = marks.due(Date.now());
      marks.told(due, Date.now());
      return due.map(({ subject, why }) => [subject, why]);
    };
    marks.explain('hooks.example', 'it was well');
    assert.deepEqual(told(), []);
    metrics.count(METRIC, { target: 'hooks.example' });
    marks.explain('hooks.example', 'connect ECONNREFUSED');
    assert.deepEqual(told(), [['hooks.example', 'connect ECONNREFUSED']]);
    marks.explain('hooks.example', 'connect ECONNREFUSED');
    assert.deepEqual(told(), [], 'the same cause is not news');
    marks.explain('hooks.example', `certificate has expired${'.'.repeat(300)}`);
    const [[, why] = []] = told();
    assert.equal(why?.length, 200);
    assert.match(why ?? '', /^certificate has expired/);
  });
});
