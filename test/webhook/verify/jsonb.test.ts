import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import pg from 'pg';
import { JsonError } from '#core/json.ts';
import type { ReadEvent } from '#core/webhook/provider.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { startDatabases, type TestDatabases } from '../../support/databases.ts';
import { NOW } from './cases.ts';

let databases: TestDatabases;
let client: pg.Client;
before(async () => {
  databases = await startDatabases({ db2: false });
  client = new pg.Client(databases.db1.url);
  await client.connect();
});
after(async () => {
  await client?.end();
  await databases?.stop();
});

/** JSON with everything that has ever divided two parsers, and now and then no JSON at all. */
const leaf = fc.constantFrom(
  '1',
  '-0',
  '1.50',
  '9007199254740993',
  '1e130000',
  '1e-130000',
  '-1e400',
  '0.1000000000000000055',
  '1e22',
  '01',
  'true',
  'null',
  '"a"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\u0041"',
  '"é"',
  '"\\x"',
  '',
  'NaN',
);
const key = fc.constantFrom('"a"', '"b"', '"__proto__"', '"\\u0061"', '"\\u0000"', '""', 'a');
const { document } = fc.letrec<{ document: string }>((tie) => ({
  document: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('document'), { maxLength: 3 }).map((items) => `[${items.join()}]`),
    fc
      .array(fc.tuple(key, tie('document')), { maxLength: 3 })
      .map((pairs) => `{${pairs.map((pair) => pair.join(':')).join()}}`),
    fc
      .tuple(fc.constantFrom(31, 33, 500), tie('document'))
      .map(([n, inner]) => `${'['.repeat(n)}${inner}${']'.repeat(n)}`),
  ),
}));

const wraps: Record<string, (inner: string) => string> = {
  stripe: (inner) => `{"id":"evt_1","data":${inner}}`,
  whatsapp: (inner) =>
    `{"entry":[{"changes":[{"value":{"messages":[{"id":"wamid.A","x":${inner}},{"id":"wamid.B"}]}}]}]}`,
};

for (const [name, wrap] of Object.entries(wraps)) {
  test(`${name}: Postgres keeps every payload that is not quarantined`, async () => {
    const seen = { kept: 0, quarantined: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(document, async (inner) => {
        const body = wrap(inner);
        let events: ReadEvent[];
        try {
          const asked = { method: 'POST', url: '', headers: {}, body: Buffer.from(body) };
          events = (await providerNamed(name)?.read(asked, { port: nodeHmac, nowSec: NOW })) ?? [];
        } catch (error) {
          assert.ok(error instanceof JsonError);
          seen.refused++;
          return;
        }
        for (const { payload, quarantine } of events) {
          if (quarantine !== null) seen.quarantined++;
          else {
            seen.kept++;
            await client.query('select $1::jsonb', [payload ?? body]);
          }
        }
      }),
      { numRuns: 1_000 },
    );
    assert.ok(seen.kept > 50 && seen.quarantined > 50 && seen.refused > 50, JSON.stringify(seen));
  });
}

test('the bodies that are quarantined include some that Postgres would refuse', async () => {
  for (const inner of ['"\\u0000"', '"\\ud800"', '1e-130000'])
    await assert.rejects(client.query('select $1::jsonb', [wraps.stripe?.(inner)]));
});
