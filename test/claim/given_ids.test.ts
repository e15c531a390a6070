// The rule for ids of users and requests, in the server and in the database: the same for every character there is.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { wrongIn } from '#core/given_id.ts';
import { useIntake } from '../support/suite.ts';

/** What Postgres and JSON can hold (no NUL, no half characters), without the planes that have no character with a rule. */
const CHARACTERS = Array.from({ length: 0xe0fff }, (_, at) => at + 1)
  .filter((code) => code < 0x20000 || code >= 0xe0000)
  .filter((code) => code < 0xd800 || code > 0xdfff);
/** What Unicode calls a control, a format or an ignorable character, or a line separator. */
const CANNOT_BE_SEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const FORM = 'is not in the Unicode form NFKC';
const isRecent = (code: number): boolean => (code >= 0xa000 && code < 0xf900) || code > 0xffff;

describe('an id', () => {
  const { session } = useIntake('session');

  test('is refused in the server where the database refuses it, and nowhere else', async () => {
    await session.rows(
      `create function pg_temp.refusal(p_id text) returns text language plpgsql as $$
       begin
         perform intake.check_ids(array[p_id], null);
         return null;
       exception when sqlstate 'SL001' then
         return substr(sqlerrm, length('the user id ') + 1);
       end $$`,
    );
    const compared = CHARACTERS.map((code) => ({ id: `a${String.fromCodePoint(code)}b`, code })).map(
      ({ id, code }) => ({ id, code, here: wrongIn(id) ?? null }),
    );
    // Which forms there are depends on the version of Unicode: characters that it gained lately are left out.
    const refused = compared.filter(({ here, code }) => here !== null && !(here === FORM && isRecent(code)));
    const rows = await session.rows<{ wrong: string | null }>(
      'select pg_temp.refusal(id) as wrong from unnest($1::text[]) with ordinality i (id, at) order by at',
      [refused.map(({ id }) => id)],
    );
    assert.deepEqual(
      rows.map(({ wrong }) => wrong),
      refused.map(({ here }) => here),
    );
    const taken = compared.filter(({ here }) => here === null).map(({ id }) => id);
    await session.rows('select intake.check_ids($1, null)', [taken]);
  });

  test('holds no character that cannot be seen', () => {
    const missed = CHARACTERS.map((code) => String.fromCodePoint(code)).filter(
      (character) => CANNOT_BE_SEEN.test(character) && wrongIn(`a${character}b`) === undefined,
    );
    assert.deepEqual(missed, []);
  });

  for (const [id, wrong] of [
    ['', 'must have 1 to 200 characters'],
    ['x'.repeat(201), 'must have 1 to 200 characters'],
    ['\u{1f39f}'.repeat(201), 'must have 1 to 200 characters'],
    [' ann', 'has a space at an end'],
    ['ann\u1680', 'has a space at an end'],
    ['ann\u200b', 'holds a control or zero-width character'],
    ['a\ud800', 'holds a control or zero-width character'],
    ['\uff41nn', 'is not in the Unicode form NFKC'],
    ['A\u030a', 'is not in the Unicode form NFKC'],
    ['ann', undefined],
    ['x'.repeat(200), undefined],
    ['\u{1f39f}'.repeat(200), undefined],
    ['J\u00f6rg M\u00fcller', undefined],
  ] as const) {
    test(`${JSON.stringify(id.slice(0, 12))} of ${id.length} ${wrong ?? 'is taken'}`, () => {
      assert.equal(wrongIn(id), wrong);
    });
  }
});
