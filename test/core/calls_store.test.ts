// What the door for call events asks of DB2.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Call, createCallStore } from '#core/calls/store.ts';

describe('the store of calls', () => {
  const CALL: Call = {
    siteId: 's',
    eventId: null,
    kind: 'k',
    payload: '{}',
    occurredAt: 'then',
    signatureHash: 'h',
  };

  function store(rows: unknown[]) {
    const asked: [string, Record<string, unknown>][] = [];
    const made = createCallStore(async <Row>(name: string, args: Record<string, unknown>) => {
      asked.push([name, args]);
      return rows as Row[];
    });
    return { asked, ...made };
  }

  it('finds a site by its id', async () => {
    const { asked, findSite } = store([{ site_id: 's' }]);
    assert.deepEqual(await findSite('s'), { site_id: 's' });
    assert.deepEqual(asked, [['find_site', { p_site_id: 's' }]]);
    assert.equal(await store([]).findSite('s'), undefined);
  });

  it('stores calls column by column, and gives the answers in the order of the calls', async () => {
    const rows = [
      { ordinal: 2, id: 'two', outcome: 'duplicate' },
      { ordinal: 1, id: 'one', outcome: 'recorded' },
    ];
    const { asked, recordCalls } = store(rows);
    const second: Call = {
      ...CALL,
      siteId: 't',
      eventId: 'e',
      kind: 'l',
      payload: '{"a":1}',
      occurredAt: 'now',
      signatureHash: null,
    };
    assert.deepEqual(await recordCalls([CALL, second]), [
      { id: 'one', outcome: 'recorded' },
      { id: 'two', outcome: 'duplicate' },
    ]);
    assert.deepEqual(asked, [
      [
        'record_calls',
        {
          p_site_ids: ['s', 't'],
          p_event_ids: [null, 'e'],
          p_kinds: ['k', 'l'],
          p_payloads: ['{}', '{"a":1}'],
          p_occurred_at: ['then', 'now'],
          p_signature_hashes: ['h', null],
        },
      ],
    ]);
  });

  it('takes fewer rows than calls for no answer at all', async () => {
    await assert.rejects(store([]).recordCalls([CALL]), /^Error: 1 calls gave 0 rows$/);
  });
});
