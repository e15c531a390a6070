// What the door for call events asks of DB2, and what it remembers of the answers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SiteBook } from '#core/calls/sites.ts';
import { type Call, type CallSite, createCallStore } from '#core/calls/store.ts';

const coded = (code: string) => Object.assign(new Error(`refused with ${code}`), { code });
const siteOf = (site_id: string) => ({ site_id }) as CallSite;

describe('the book of sites', () => {
  function book() {
    const world = { nowMs: 0, asked: [] as string[], isDown: false };
    const sites = new SiteBook(
      {
        findSite: async (siteId) => {
          world.asked.push(siteId);
          if (world.isDown) throw coded('08006');
          return siteId === 'none' ? undefined : siteOf(siteId);
        },
      },
      () => world.nowMs,
    );
    return { world, sites };
  }

  it('asks once a second for a site, known or not, and once for all who ask together', async () => {
    const { world, sites } = book();
    const found = await Promise.all(['a', 'a', 'none', 'none'].map((id) => sites.find(id)));
    assert.deepEqual(
      found.map((site) => site?.site_id),
      ['a', 'a', undefined, undefined],
    );
    world.nowMs = 999;
    await sites.find('a');
    assert.deepEqual(world.asked, ['a', 'none']);
    world.nowMs = 1_000;
    await sites.find('a');
    assert.deepEqual(world.asked, ['a', 'none', 'a']);
  });

  it('forgets a failed question, and everything once a thousand ids are in it', async () => {
    const { world, sites } = book();
    world.isDown = true;
    await assert.rejects(sites.find('a'), /08006/);
    world.isDown = false;
    assert.equal((await sites.find('a'))?.site_id, 'a');
    for (let index = 0; index < 999; index++) await sites.find(`made up ${index}`);
    const before = world.asked.length;
    await sites.find('a');
    assert.equal(world.asked.length, before);
    await sites.find('one more');
    await sites.find('a');
    assert.equal(world.asked.length, before + 2);
  });

  it('keeps a newer answer although an older question fails late', async () => {
    let fail: (error: Error) => void = () => undefined;
    const answers = [
      new Promise<never>((_, reject) => {
        fail = reject;
      }),
      Promise.resolve(siteOf('site-1')),
    ];
    let nowMs = 0;
    let asked = 0;
    const sites = new SiteBook(
      { findSite: () => answers[asked++] ?? Promise.resolve(undefined) },
      () => nowMs,
    );
    const first = sites.find('a');
    nowMs = 1_000;
    await sites.find('a');
    fail(coded('08006'));
    await assert.rejects(first, /08006/);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await sites.find('a'))?.site_id, 'site-1');
    assert.equal(asked, 2);
  });
});

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
