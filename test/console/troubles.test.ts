// What cannot be used, in the words of the console.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Breaker } from '#core/breaker.ts';
import type { LiveSample, PoolView, Trouble } from '../../console/lib/shapes.ts';
import {
  hasSeveral,
  hintOf,
  hooksAt,
  isNeededBy,
  LONGEST_PAUSE_SEC,
  ledgerHint,
  sentenceOf,
  shownOf,
  targetOf,
  titleOf,
} from '../../console/lib/troubles.ts';

const SINCE = '2026-02-24T10:00:00.000Z';
const breaker = (subject: string, why: string | null = null): Trouble => ({
  kind: 'breaker',
  subject,
  why,
  since: SINCE,
});
const secret = (endpoint: string, why: string | null = null): Trouble => ({
  kind: 'secret',
  subject: `endpoint ${endpoint}`,
  why,
  since: SINCE,
});
const HOST = 'hooks.example:8443';
const pool = (hooks: Partial<PoolView>): PoolView =>
  ({
    validation_webhook_url: null,
    commit_webhook_url: null,
    commit_rpc_name: 'finalize_transaction',
    ...hooks,
  }) as PoolView;
const VALIDATED = pool({ validation_webhook_url: `https://${HOST}/may-they-buy?key=1` });

describe('a trouble', () => {
  it('is named by what cannot be used, a missing secret by what is refused', () => {
    assert.deepEqual(
      [HOST, 'handler mail', 'ledger own_commit', 'ledger', 'DB2', 'Stripe'].map((subject) =>
        titleOf(breaker(subject)),
      ),
      [
        `A hook at ${HOST} cannot be used`,
        'The handler mail fails event after event',
        'The commit function own_commit cannot be called',
        'Workers do not reach the ledger',
        'Workers do not reach the ledger',
        'Workers do not reach Stripe',
      ],
    );
    assert.equal(titleOf(secret('phones')), 'Deliveries to the endpoint phones are refused');
    assert.deepEqual(targetOf(secret('ledger')), { what: 'secret', name: 'ledger' });
  });

  it('is one sentence with its cause, whether that ends in a full stop or not', () => {
    assert.equal(sentenceOf(breaker(HOST, 'status 503')), `A hook at ${HOST} cannot be used: status 503.`);
    assert.equal(
      sentenceOf(secret('phones', 'TOKEN is not set.')),
      'Deliveries to the endpoint phones are refused: TOKEN is not set.',
    );
    assert.equal(sentenceOf(breaker(HOST)), `A hook at ${HOST} cannot be used.`);
  });

  it('of the ledger is left to the alarm of a ledger that is down', () => {
    const troubles = [breaker('ledger'), breaker(HOST), secret('ledger')];
    const sample = (ok: boolean) => ({ troubles, db2: { ok, ms: 1 } }) as unknown as LiveSample;
    assert.deepEqual(shownOf(sample(true)), troubles);
    assert.deepEqual(shownOf(sample(false)), troubles.slice(1));
  });

  it('has a remedy by what Node says, and another one where it says nothing known', () => {
    assert.match(hintOf('certificate has expired'), /Renew it at that host\.$/);
    assert.match(hintOf('connect ECONNREFUSED 10.0.0.1:443'), /^Nothing listens there/);
    assert.match(hintOf(null), /^Mend the service/);
  });
});

describe('a ledger that workers leave alone', () => {
  /** Samples every two seconds until now; the ledger did not answer in the first ones. */
  const samples = (downSec: number, upSec: number) =>
    Array.from({ length: (downSec + upSec) / 2 + 1 }, (_, index) => ({
      at: new Date(Date.parse(SINCE) + index * 2_000).toISOString(),
      db2_ok: index * 2 >= downSec,
    }));
  const blamesSettings = (points: Parameters<typeof ledgerHint>[0], since = SINCE) =>
    /the address and the role/.test(ledgerHint(points, since));

  it('is about to be tried again directly after an outage: nothing is said of address and role', () => {
    for (const upSec of [0, 10, 24]) {
      assert.match(
        ledgerHint(samples(20, upSec), SINCE),
        /^The ledger answers this server\. Workers try it again within 15 seconds\./,
      );
      assert(!blamesSettings(samples(20, upSec)), `${upSec} s after the outage`);
    }
    assert(
      !blamesSettings(samples(0, 4)),
      'a page that was just opened has not seen for how long it answers',
    );
    assert(!blamesSettings([]));
    const justNow = samples(0, 60).at(-2)?.at;
    assert(!blamesSettings(samples(0, 60), justNow), 'the workers were cut off just now');
  });

  it('points to the address and the role once this server has reached it for longer than workers wait', () => {
    assert(blamesSettings(samples(20, 40)));
    assert(blamesSettings(samples(0, 40)));
    assert(!blamesSettings([...samples(0, 40), ...samples(44, 4).slice(21)]), 'until it is away again');
    const [first, ...later] = samples(0, 40);
    assert(
      first && !blamesSettings([first, ...later.slice(-3)]),
      'nothing is known of a time without samples',
    );
  });

  it('is tried as often as the console says', () => {
    let nowMs = 0;
    const opened = new Breaker(() => nowMs);
    const pauses = Array.from({ length: 10 }, () => {
      opened.outage();
      const pauseMs = opened.openUntilMs - nowMs;
      nowMs += pauseMs;
      return pauseMs;
    });
    assert.equal(Math.max(...pauses), LONGEST_PAUSE_SEC * 1_000);
  });
});

describe('a hook', () => {
  it('is found by its host, as the validation or the commit hook, with its whole address', () => {
    assert.deepEqual(hooksAt(HOST, VALIDATED), [
      { field: 'validation_webhook_url', name: 'validation hook', url: `https://${HOST}/may-they-buy?key=1` },
    ]);
    assert.deepEqual(
      hooksAt(HOST, pool({ commit_webhook_url: `https://${HOST}/c` })).map(({ name }) => name),
      ['commit hook'],
    );
    assert.deepEqual(hooksAt('hooks.example', VALIDATED), [], 'another port is another host');
  });

  it('may be another one only where pools call several addresses at its host', () => {
    const other = pool({ validation_webhook_url: `https://${HOST}/other` });
    const elsewhere = pool({ commit_webhook_url: 'https://elsewhere.example/' });
    assert(!hasSeveral(HOST, [VALIDATED, VALIDATED, elsewhere]));
    assert(hasSeveral(HOST, [VALIDATED, other]));
    assert(hasSeveral(HOST, [{ ...VALIDATED, commit_webhook_url: `https://${HOST}/commit` }]));
  });

  it('keeps the claims of pools that call it waiting, and no others', () => {
    assert(isNeededBy(VALIDATED, breaker(HOST)));
    assert(isNeededBy(VALIDATED, breaker('ledger')));
    assert(!isNeededBy(VALIDATED, breaker('elsewhere.example')));
    assert(!isNeededBy(VALIDATED, secret(HOST)));
    const own = pool({ commit_rpc_name: 'own_commit' });
    assert(isNeededBy(own, breaker('ledger own_commit')));
    assert(!isNeededBy(VALIDATED, breaker('ledger own_commit')));
    assert(!isNeededBy(pool({ commit_webhook_url: `https://${HOST}/c` }), breaker('ledger')));
  });
});
