// The signature cases of Node's tests on Deno's WebCrypto; they need no stack.

import { type Case, problemOf, validCases, vectorCases } from '../../../../test/webhook/verify/cases.ts';
import { refusedCases } from '../../../../test/webhook/verify/refused_cases.ts';
import { webHmac } from '../_shared/webhook/hmac.ts';

const test = Deno.test;

async function passes(cases: readonly Case[], atLeast: number): Promise<void> {
  if (cases.length < atLeast) throw new Error(`only ${cases.length} cases`);
  for (const one of cases) {
    const problem = await problemOf(one, webHmac);
    if (problem !== undefined) throw new Error(`${one.name}: ${problem}`);
  }
}

test('every published and minted signature is judged as on Node', () => passes(vectorCases(), 15));

test('every provider verifies and reads what it signs', async () => passes(await validCases(), 10));

test('missing, doubled, misspelled, foreign and untimely signatures are refused', async () =>
  passes(await refusedCases(), 200));
