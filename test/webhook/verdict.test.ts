import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PermanentError, TryLater } from '#core/webhook/handlers.ts';
import { verdictOf } from '#core/webhook/verdict.ts';

const VERDICTS: Record<string, string[]> = {
  dead_letter: ['SL030'],
  later: ['SL034'],
  again: ['40P01', '40001', '55P03'],
  outage: ['08000', '08006', '53300', '57P01', '57P03', '58030', '25006'],
  // Neither longer nor shorter codes that look like an outage are one.
  failed: ['23505', '57014', 'SL001', 'ECONNREFUSED', 'x08006', '080061', '2500', '25001', '5700', ''],
};

describe('the verdict of an error', () => {
  for (const [verdict, codes] of Object.entries(VERDICTS))
    it(`is ${verdict} for ${codes.join(', ')}`, () => {
      for (const code of codes) assert.equal(verdictOf({ code }), verdict, code);
    });

  it('is failed for whatever has no code that is a text', () => {
    for (const thrown of [
      undefined,
      null,
      'SL030',
      8006,
      {},
      { code: 25006 },
      { code: null },
      new Error('08006'),
    ])
      assert.equal(verdictOf(thrown), 'failed');
  });

  it('knows the errors that handlers throw', () => {
    assert.deepEqual([new PermanentError(''), new TryLater('')].map(verdictOf), ['dead_letter', 'later']);
  });
});
