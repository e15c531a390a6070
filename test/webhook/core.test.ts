// The parts of the core that need no database to be wrong.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ERROR_KINDS } from '#core/errors.ts';
import { NO_METRICS } from '#core/ports.ts';
import type { Delivery, Lease, Processed, Recorded, TakenEvent, WebhookStore } from '#core/webhook/ports.ts';
import { Processor } from '#core/webhook/processor.ts';
import { Recorder } from '#core/webhook/record.ts';
import { memoryLog } from '../core/support.ts';

const coded = (code: string) => Object.assign(new Error(`refused with ${code}`), { code });

function delivery(eventId: string, bytes = 10): Delivery {
  const event = {
    eventId,
    eventType: 't',
    occurredAt: null,
    payload: null,
    hash: 'h',
    dedupeHash: null,
    quarantine: null,
  };
  return { webhookId: 'w', events: [event], body: new Uint8Array(bytes), signature: 's' };
}

const recordedAs = ({ events }: Delivery): Recorded[] =>
  events.map(({ eventId, quarantine }, index) => ({
    ordinal: index + 1,
    id: eventId,
    outcome: quarantine === null ? 'recorded' : 'quarantined',
    status: quarantine === null ? 'pending' : 'dead_letter',
    lane: 0,
  }));

describe('the recorder', () => {
  it('quarantines alone what the database cannot hold, and records its neighbours', async () => {
    const recorder = new Recorder(async (deliveries) => {
      if (deliveries.some(({ events }) => events[0]?.eventId === 'bad' && events[0].quarantine === null))
        throw coded('22P05');
      return deliveries.map(recordedAs);
    });
    const answers = await Promise.all(['a', 'bad', 'b'].map((id) => recorder.record(delivery(id))));
    assert.deepEqual(
      answers.map(([row]) => row?.outcome),
      ['recorded', 'quarantined', 'recorded'],
    );
  });

  it('says what is wrong where it is not the data, and quarantines nothing', async () => {
    for (const code of ['42883', '08006']) {
      const recorder = new Recorder(async () => {
        throw coded(code);
      });
      await assert.rejects(recorder.record(delivery('a')), new RegExp(code));
    }
  });

  it('tries again when something is in the way, and says busy when it stays', async () => {
    for (const code of ['40P01', '55P03', '57014']) {
      let calls = 0;
      const once = new Recorder(async (deliveries) => {
        if (++calls === 1) throw coded(code);
        return deliveries.map(recordedAs);
      });
      assert.equal((await once.record(delivery('a')))[0]?.outcome, 'recorded');
      const always = new Recorder(async () => {
        calls++;
        throw coded(code);
      });
      calls = 0;
      await assert.rejects(always.record(delivery('a')), { kind: ERROR_KINDS.busy });
      assert.ok(calls > 1);
    }
  });

  it('carries no more than 4 MB of bodies in one statement', async () => {
    const sizes: number[] = [];
    const recorder = new Recorder(async (deliveries) => {
      sizes.push(deliveries.length);
      return deliveries.map(recordedAs);
    });
    const megabyte = 1024 * 1024;
    await Promise.all(
      Array.from({ length: 9 }, (_, index) => recorder.record(delivery(`${index}`, megabyte))),
    );
    assert.deepEqual(sizes, [3, 3, 3]);
  });
});

describe('the processor', () => {
  const taken = (id: string, handler?: string) =>
    ({
      id,
      lease_token: `${id} lease`,
      lane: 1,
      provider: 'shop',
      takeovers: 0,
      handler_kind: handler === undefined ? 'sql' : 'typescript',
      handler_name: handler ?? null,
    }) as TakenEvent;

  function processorOf(events: TakenEvent[], process: (ids: string[]) => void) {
    const finished: [string, string][] = [];
    const log = memoryLog();
    const store: Partial<WebhookStore> = {
      lanes: async () => [{ lane: 1, kind: null, handler_name: null }],
      take: async () => events,
      takeSuspect: async () => [],
      async finish({ id }, outcome) {
        finished.push([id, outcome]);
        return outcome;
      },
    };
    const ports = {
      store: store as WebhookStore,
      connectionsOf: () => ({
        process: async (leases: readonly Lease[]) => {
          process(leases.map(({ id }) => id));
          const success: Processed = { status: 'success', error: null, outcome: 'success' };
          return new Map(leases.map(({ id }) => [id, success]));
        },
        transact: () => Promise.reject(new Error('not here')),
      }),
      handlers: new Map(),
      log,
      metrics: NO_METRICS,
      now: () => 0,
    };
    const step = () => new Processor(ports, 100).step(new AbortController().signal);
    return { step, finished, log };
  }

  const ENDS = { 23503: 'failed', 57014: 'slow', '55P03': 'again', 58030: 'outage' };
  for (const [code, end] of Object.entries(ENDS))
    it(`halves a set that fails with ${code} until the event that spoils it stands alone: ${end}`, async () => {
      const { step, finished } = processorOf(
        ['a', 'b', 'bad', 'c'].map((id) => taken(id)),
        (ids) => {
          if (ids.includes('bad')) throw coded(code);
        },
      );
      assert.deepEqual((await step()).outcomes, { success: 3, [end]: 1 });
      assert.deepEqual(finished, [['bad', end]]);
    });

  it('hands back an event whose handler it does not have', async () => {
    const { step, finished } = processorOf([taken('a', 'of another')], () => undefined);
    assert.deepEqual((await step()).outcomes, { handed_back: 1 });
    assert.deepEqual(finished, [['a', 'pending']]);
  });

  it('fails no event while the database is away', async () => {
    const { step, finished } = processorOf([taken('a'), taken('b')], () => {
      throw coded('57P01');
    });
    await assert.rejects(step(), /57P01/);
    assert.deepEqual(finished, []);
  });
});
