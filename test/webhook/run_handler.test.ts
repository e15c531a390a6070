import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { TransactionEnded } from '#core/transaction.ts';
import { type HandledEvent, PermanentError, TryLater } from '#core/webhook/handlers.ts';
import { handBack, runHandler } from '#core/webhook/run_handler.ts';
import { coded, handlerOf, neverAborted, ProcessWorld, takenEvent } from './process_support.ts';

const EVENT = takenEvent('a', 'h');
const LEASE = { p_id: 'a', p_lease_token: 'lease of a' };
const LOST = { status: null, error: null, outcome: 'lost_lease' };

describe('one event through one handler', () => {
  it('gives the handler the event in its own words, what it has called, and the transaction', async () => {
    const world = new ProcessWorld();
    const seen: unknown[] = [];
    const handler = handlerOf({
      call: async (event, signal) => {
        seen.push(event, signal instanceof AbortSignal);
        return 'called';
      },
      apply: async (event, tx, called) => void seen.push(event, tx === world.tx, called),
    });
    const became = await runHandler(EVENT, handler, world.runPorts(), neverAborted);
    assert.deepEqual(became, { status: 'success', error: null, outcome: 'success' });
    const event: HandledEvent = {
      id: 'a',
      webhookId: 'the webhook',
      provider: 'shop',
      tenant: 'shop',
      eventId: 'event a',
      eventType: 'order.paid',
      occurredAt: '2026-02-24T10:00:00.000Z',
      attempts: 2,
      payload: { of: 'a' },
      idempotencyKey: 'key of a',
    };
    assert.deepEqual(seen, [event, true, event, true, 'called']);
  });

  it('looks for its lease before the effect, and marks the event after it', async () => {
    const world = new ProcessWorld();
    const handler = handlerOf({ apply: async (_, tx) => void (await tx.call('effect', {})) });
    await runHandler(EVENT, handler, world.runPorts(), neverAborted);
    assert.deepEqual(world.calls, [
      { functionName: 'webhook.hold_event', args: LEASE },
      { functionName: 'effect', args: {} },
      { functionName: 'webhook.finish_event', args: { ...LEASE, p_outcome: 'success', p_error: null } },
    ]);
  });

  it('marks it as skipped with the handler’s reason, as the database can hold it', async () => {
    const world = new ProcessWorld();
    const handler = handlerOf({ apply: async () => 'no\0t for \ud800us' });
    const error = 'no\ufffdt for \ufffdus';
    assert.deepEqual(await runHandler(EVENT, handler, world.runPorts(), neverAborted), {
      status: 'skipped',
      error,
      outcome: 'skipped',
    });
    assert.deepEqual(world.calls.at(-1)?.args, { ...LEASE, p_outcome: 'skipped', p_error: error });
  });

  it('ignores an answer that is not text', async () => {
    const world = new ProcessWorld();
    const handler = handlerOf({ apply: async () => ({ rows: 1 }) as never });
    assert.equal((await runHandler(EVENT, handler, world.runPorts(), neverAborted)).outcome, 'success');
  });

  for (const isHeld of [false, undefined])
    it(`does nothing where the lease is ${isHeld === false ? 'lost' : 'nowhere'}`, async () => {
      const world = new ProcessWorld();
      world.isHeld = isHeld;
      let applied = 0;
      const handler = handlerOf({ apply: async () => void applied++ });
      assert.deepEqual(await runHandler(EVENT, handler, world.runPorts(), neverAborted), LOST);
      assert.deepEqual([applied, world.finished, world.calls.length], [0, [], 1]);
    });

  for (const [what, status] of [
    ['refused', 'lost_lease'],
    ['not answered', undefined],
  ] as const)
    it(`takes its effect back where the mark is ${what}`, async () => {
      const world = new ProcessWorld();
      world.finishes = () => status;
      let isRolledBack = false;
      world.transact = (work) =>
        work(world.tx).catch((error) => {
          isRolledBack = true;
          throw error;
        });
      assert.deepEqual(await runHandler(EVENT, handlerOf(), world.runPorts(), neverAborted), LOST);
      assert.equal(isRolledBack, true);
    });
});

describe('a handler that ends its transaction', () => {
  it('sends its event to the dead letters: an effect may stand without a mark', async () => {
    const world = new ProcessWorld();
    world.transact = () => Promise.reject(new TransactionEnded('ended by its work'));
    assert.deepEqual(await runHandler(EVENT, handlerOf(), world.runPorts(), neverAborted), {
      status: null,
      error: 'ended by its work',
      outcome: 'dead_letter',
      verdict: 'dead_letter',
    });
  });
});

describe('a handler that fails', () => {
  const failedFetch = (cause: Error) => new TypeError('fetch failed', { cause });
  /** As Node throws it: neither the whole nor its message says what failed, its code does. */
  const noAddress = Object.assign(new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')]), {
    code: 'ECONNREFUSED',
  });
  const FAILURES: [string, unknown, string, string][] = [
    ['an error', new Error('no'), 'failed', 'no'],
    ['a text', 'just no', 'failed', 'just no'],
    ['a permanent error', new PermanentError('never'), 'dead_letter', 'never'],
    ['what comes later', new TryLater('not yet'), 'later', 'not yet'],
    ['a connection of its own', coded('ECONNREFUSED'), 'failed', 'failed with ECONNREFUSED'],
    ['a call', failedFetch(new Error('other side closed')), 'failed', 'fetch failed: other side closed'],
    [
      'a call to a name with several addresses',
      failedFetch(noAddress),
      'failed',
      'fetch failed: ECONNREFUSED',
    ],
    ['a call without a word', failedFetch(new Error()), 'failed', 'fetch failed'],
    ['an outage it saw', coded('08006'), 'outage', 'failed with 08006'],
  ];
  for (const [what, thrown, outcome, error] of FAILURES)
    for (const where of ['call', 'apply'] as const)
      it(`by ${what} in ${where} leaves its event ${outcome}`, async () => {
        const world = new ProcessWorld();
        const handler = handlerOf({ [where]: () => Promise.reject(thrown) });
        const became = await runHandler(EVENT, handler, world.runPorts(), neverAborted);
        assert.deepEqual(became, { status: null, error, outcome, verdict: outcome });
        assert.deepEqual(world.finished, [{ id: 'a', lease: 'lease of a', outcome, error }]);
        if (where === 'call') assert.deepEqual(world.calls, []);
      });

  it('says what the event became, not what was wanted', async () => {
    const world = new ProcessWorld();
    world.finish = () => 'dead_letter';
    const handler = handlerOf({ apply: () => Promise.reject(new Error('the fifth time')) });
    assert.equal((await runHandler(EVENT, handler, world.runPorts(), neverAborted)).outcome, 'dead_letter');
  });

  it('is told from a database that went away: nothing is marked then', async () => {
    const world = new ProcessWorld();
    world.transact = () => Promise.reject(coded('57P01'));
    await assert.rejects(runHandler(EVENT, handlerOf(), world.runPorts(), neverAborted), /57P01/);
    assert.deepEqual(world.finished, []);
  });

  it('is told from a commit that the database refuses, which is the event’s', async () => {
    const world = new ProcessWorld();
    world.transact = () => Promise.reject(coded('23505'));
    const became = await runHandler(EVENT, handlerOf(), world.runPorts(), neverAborted);
    assert.deepEqual(became, {
      status: null,
      error: 'failed with 23505',
      outcome: 'failed',
      verdict: 'failed',
    });
  });
});

describe('the time of a handler', () => {
  afterEach(() => mock.timers.reset());

  it('is 30 s for the call, then its signal aborts and it has failed', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const world = new ProcessWorld();
    let given: AbortSignal | undefined;
    const call = (_: unknown, signal: AbortSignal) => {
      given = signal;
      return new Promise<never>(() => undefined);
    };
    const running = runHandler(EVENT, handlerOf({ call }), world.runPorts(), neverAborted);
    mock.timers.tick(29_999);
    assert.equal(given?.aborted, false);
    mock.timers.tick(1);
    assert.equal(given?.aborted, true);
    assert.deepEqual(await running, {
      status: null,
      error: 'not done within 30000 ms',
      outcome: 'failed',
      verdict: 'failed',
    });
  });

  it('is 45 s for the effect, unless the ports say otherwise', async () => {
    const world = new ProcessWorld();
    await runHandler(EVENT, handlerOf(), world.runPorts(), neverAborted);
    const timeouts = { callMs: 10, applyMs: 20 };
    await runHandler(EVENT, handlerOf(), { ...world.runPorts(), timeouts }, neverAborted);
    assert.deepEqual(world.limitsMs, [45_000, 20]);
  });

  it('ends with our own shutdown, which hands the event back', async () => {
    const world = new ProcessWorld();
    const stopping = new AbortController();
    const call = () => new Promise<never>(() => stopping.abort());
    const became = await runHandler(EVENT, handlerOf({ call }), world.runPorts(), stopping.signal);
    assert.deepEqual(became, { status: null, error: null, outcome: 'handed_back' });
    assert.deepEqual(world.finished, [{ id: 'a', lease: 'lease of a', outcome: 'pending', error: null }]);
  });
});

describe('an event that is handed back', () => {
  it('has lost its lease where another worker has it', async () => {
    const world = new ProcessWorld();
    world.finish = () => 'lost_lease';
    assert.deepEqual(await handBack(EVENT, world.runPorts()), LOST);
  });
});

describe('the errors that handlers throw', () => {
  it('are known by their names and codes, which another copy of the module has too', () => {
    const errors = [new PermanentError('a'), new TryLater('b')];
    assert.deepEqual(
      errors.map(({ name, code, message }) => [name, code, message]),
      [
        ['PermanentError', 'SL030', 'a'],
        ['TryLater', 'SL034', 'b'],
      ],
    );
  });
});
