// The table would prove nothing if its judge let everything pass: each kind of bad answer is complained about.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer } from '../server/support.ts';
import { changed } from './fingerprint.ts';
import { complaints } from './judge.ts';

const EXPECTED = { status: 422, word: 'invalid_input' };
const SECRET = 'whsec_never_to_be_seen';

function refusal(change: Record<string, unknown> = {}, answer: Partial<Answer> = {}): Answer {
  const error = {
    code: 'invalid_input',
    message: 'It is not valid.',
    hint: 'Mend it.',
    request_id: 'r1',
    ...change,
  };
  const json = { error };
  return { status: 422, headers: { 'x-request-id': 'r1' }, text: JSON.stringify(json), json, ...answer };
}
const complain = (answer: Answer, expected: Parameters<typeof complaints>[1] = EXPECTED) =>
  complaints(answer, expected, [SECRET]);

describe('the judge of answers', () => {
  it('has nothing to say to a proper refusal', () => assert.deepEqual(complain(refusal()), []));

  const BAD: [name: string, answer: Answer, complaint: RegExp][] = [
    ['another status', refusal({}, { status: 500 }), /answered 500/],
    ['another code', refusal({ code: 'internal' }), /said internal/],
    ['a refusal without a hint', refusal({ hint: undefined }), /not one of our refusals/],
    ['a field too many', refusal({ detail: 'more' }), /not one of our refusals/],
    ['a plain text', refusal({}, { text: 'Bad Request', json: undefined }), /not one of our refusals/],
    ['another request id', refusal({ request_id: 'r2' }), /another request id/],
    ['SQL', refusal({ hint: 'in select claim_id from claims where' }), /inside: select/],
    ['the name of a table', refusal({ hint: 'no rows in intake.pool_totals' }), /inside/],
    ['a SQLSTATE', refusal({ message: 'SL001 raised' }), /inside/],
    ['a stack trace', refusal({ hint: 'Error\n    at handle (/x/y.ts:3:4)' }), /inside/],
    ['a file', refusal({ hint: 'cannot open /etc/sluice/env' }), /inside/],
    ['the address of a database', refusal({ hint: 'postgres://u:p@h/db' }), /inside/],
    ['a secret', refusal({ hint: `not ${SECRET}` }), /secret/],
    [
      'a secret in a header',
      refusal({}, { headers: { 'x-request-id': 'r1', 'set-cookie': [SECRET] } }),
      /secret/,
    ],
  ];
  for (const [name, answer, complaint] of BAD)
    it(`complains about ${name}`, () => {
      // JSON hides line ends; what came over the wire is what counts.
      const raw = { ...answer, text: answer.text.replaceAll('\\n', '\n') };
      assert.match(complain(raw).join('\n'), complaint);
    });

  it('wants Retry-After with 429 and 503, and Allow with 405', () => {
    for (const status of [429, 503])
      assert.match(complain(refusal({}, { status }), { status }).join(), /Retry-After/);
    const told = { 'x-request-id': 'r1', 'retry-after': '1' };
    assert.deepEqual(complain(refusal({}, { status: 503, headers: told }), { status: 503 }), []);
    assert.match(
      complain(refusal({}, { status: 405 }), { status: 405, allow: 'POST' }).join(),
      /allows undefined/,
    );
  });

  it('sees a table that changed, came or went', () => {
    const before = new Map([
      ['a', '1'],
      ['b', '1'],
      ['c', '1'],
    ]);
    const after = new Map([
      ['a', '1'],
      ['b', '2'],
      ['d', '1'],
    ]);
    assert.deepEqual(changed(before, after), ['b', 'c', 'd']);
  });
});
