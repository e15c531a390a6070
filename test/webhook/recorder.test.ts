// Deliveries become rows: which failures are tried again, which are put away, and which are told.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Delivery, Recorded } from '#core/webhook/ports.ts';
import { Recorder } from '#core/webhook/record.ts';

const coded = (code: unknown) => Object.assign(new Error(`refused with ${code}`), { code });

function delivery(ids: string[], bytes = 10, quarantine: string | null = null): Delivery {
  const events = ids.map((eventId) => ({
    eventId,
    eventType: 't',
    occurredAt: null,
    payload: '{}',
    hash: 'h',
    dedupeHash: null,
    quarantine,
  }));
  return { webhookId: 'w', events, body: new Uint8Array(bytes), signature: 's' };
}

const rowsOf = ({ events }: Delivery): Recorded[] =>
  events.map(({ eventId }, index) => ({
    ordinal: index + 1,
    id: eventId,
    outcome: 'recorded',
    status: 'pending',
    lane: 0,
  }));

/** Fails as long as there are errors, then records; notes every call. */
function recording(...errors: unknown[]) {
  const calls: Delivery[][] = [];
  const recorder = new Recorder(async (deliveries) => {
    calls.push([...deliveries]);
    const error = errors.shift();
    if (error !== undefined) throw error;
    return deliveries.map(rowsOf);
  });
  return { recorder, calls };
}

describe('a delivery that is refused', () => {
  for (const code of ['22P05', '22021', '54000', '54001'])
    it(`with ${code} is put away: its bytes stay, its payloads go, and the reason says so`, async () => {
      const { recorder, calls } = recording(coded(code));
      await recorder.record(delivery(['a', 'b']));
      assert.deepEqual(
        calls[1]?.[0]?.events.map(({ eventId, eventType, payload, quarantine }) => [
          eventId,
          eventType,
          payload,
          quarantine,
        ]),
        ['a', 'b'].map((id) => [id, 't', null, `the database refused it (${code})`]),
      );
      assert.deepEqual([calls[1]?.[0]?.body.length, calls[1]?.[0]?.signature], [10, 's']);
    });

  it('keeps the reason for which it was put away before', async () => {
    const { recorder, calls } = recording(coded('22P05'));
    await recorder.record(delivery(['a'], 10, 'too_deep'));
    assert.equal(calls[1]?.[0]?.events[0]?.quarantine, 'too_deep');
  });

  for (const code of ['x22P05', '22P055', '2200', '42883', '08006', undefined, 22_021])
    it(`with ${code} is told so, and nothing is put away`, async () => {
      const { recorder, calls } = recording(coded(code));
      await assert.rejects(recorder.record(delivery(['a'])), new RegExp(`refused with ${code}`));
      assert.equal(calls.length, 1);
    });

  for (const [code, calls] of Object.entries({
    '40P01': 2,
    '55P03': 2,
    x40P01: 1,
    '40P011': 1,
    '40001': 2,
    '40002': 1,
  }))
    it(`with ${code} has been tried ${calls} times`, async () => {
      const { recorder, calls: made } = recording(coded(code));
      await recorder.record(delivery(['a'])).catch(() => undefined);
      assert.equal(made.length, calls);
    });

  for (const code of ['55P03', '40P01', '57014'])
    it(`with ${code} among others is tried without them, and they without it`, async () => {
      const isStuck = ({ events }: Delivery) => events[0]?.eventId === 'stuck';
      const sizes: number[] = [];
      const recorder = new Recorder(async (deliveries) => {
        sizes.push(deliveries.length);
        if (deliveries.some(isStuck)) throw coded(code);
        return deliveries.map(rowsOf);
      });
      const all = await Promise.allSettled(
        ['a', 'stuck', 'b', 'c'].map((id) => recorder.record(delivery([id]))),
      );
      assert.deepEqual(
        all.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
      );
      assert.equal(sizes[0], 4);
    });

  it('while the database is away takes its neighbours along, unhalved', async () => {
    const { recorder, calls } = recording(coded('08006'));
    const both = await Promise.allSettled([
      recorder.record(delivery(['a'])),
      recorder.record(delivery(['b'])),
    ]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(calls.length, 1);
  });
});

describe('an endpoint that meets a lock', () => {
  it('is recorded by itself, and the other endpoints without it', async () => {
    const calls: string[][] = [];
    const recorder = new Recorder(async (deliveries) => {
      calls.push(deliveries.map(({ webhookId }) => webhookId));
      if (deliveries.some(({ webhookId }) => webhookId === 'stuck')) throw coded('55P03');
      return deliveries.map(rowsOf);
    });
    const stuck = recorder.record({ ...delivery(['a']), webhookId: 'stuck' });
    const refused = assert.rejects(stuck, { name: 'HttpError', message: /want the same thing at once/ });
    const ids = async (answer: Promise<Recorded[]>) => (await answer).map(({ id }) => id);
    assert.deepEqual(await ids(recorder.record(delivery(['b']))), ['b']);
    assert.deepEqual(await ids(recorder.record(delivery(['c']))), ['c']);
    assert.deepEqual(calls.slice(0, 3), [['stuck', 'w'], ['stuck'], ['w']]);
    await refused;
    await recorder.drain();
  });
});

describe('the weight of a delivery', () => {
  it('counts its events too: a thousand small ones are half a megabyte', async () => {
    const { recorder, calls } = recording();
    const thousand = Array.from({ length: 1_000 }, (_, index) => String(index));
    await Promise.all(Array.from({ length: 9 }, () => recorder.record(delivery(thousand))));
    assert.deepEqual(
      calls.map(({ length }) => length),
      [8, 1],
    );
  });
});
