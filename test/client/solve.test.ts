import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createChallenge, verifySolution } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/sha';
import { solveChallenge } from '#client/solve.ts';

const SECRETS = { hmacSignatureSecret: 'of the parameters', hmacKeySignatureSecret: 'of the key' };
const DIFFICULTY = 50_000;

const challengeAt = (counter: number, difficulty = DIFFICULTY) =>
  createChallenge({ algorithm: 'SHA-256', cost: 1, counter, deriveKey, data: { difficulty }, ...SECRETS });
const read = (solution: string | undefined) => JSON.parse(atob(solution ?? ''));
const isGood = async (solution: string | undefined) =>
  (await verifySolution({ ...read(solution), deriveKey, ...SECRETS })).verified;

describe('the solver of the client', () => {
  it('finds the number wherever it is, and what it sends is what ALTCHA’s own library takes', async () => {
    for (const counter of [0, 1, 255, 256, 999, 1_000, 1_001, 49_999, DIFFICULTY]) {
      const solution = await solveChallenge(await challengeAt(counter));
      assert.equal(read(solution).solution.counter, counter);
      assert.equal(await isGood(solution), true, `the number ${counter}`);
    }
    // The control: one bit of the key is another key.
    const sent = read(await solveChallenge(await challengeAt(7)));
    const last = sent.solution.derivedKey.at(-1) === '0' ? '1' : '0';
    sent.solution.derivedKey = sent.solution.derivedKey.slice(0, -1) + last;
    assert.equal(await isGood(btoa(JSON.stringify(sent))), false);
  });

  it('finds nothing beyond the difficulty, and says so instead of searching for ever', async () => {
    assert.equal(await solveChallenge(await challengeAt(1_001, 1_000)), undefined);
  });

  it('leaves alone what it cannot solve', async () => {
    const { parameters, signature } = await challengeAt(5);
    for (const other of [
      null,
      'x',
      {},
      { provider: 'turnstile', sitekey: '1x' },
      { parameters: null, signature },
      { parameters: { ...parameters, algorithm: 'PBKDF2/SHA-256' }, signature },
      { parameters: { ...parameters, cost: 2 }, signature },
      { parameters: { ...parameters, keyLength: 16 }, signature },
      { parameters: { ...parameters, nonce: 'xy' }, signature },
      { parameters: { ...parameters, data: undefined }, signature },
      { parameters },
    ])
      assert.equal(await solveChallenge(other), undefined, JSON.stringify(other));
  });

  it('tells how far it is, lets others run meanwhile, and ends when its caller aborts', async () => {
    const shares: number[] = [];
    const stopping = new AbortController();
    const endless = { ...(await challengeAt(DIFFICULTY)) };
    endless.parameters = { ...endless.parameters, keyPrefix: '0'.repeat(32), data: { difficulty: 2 ** 31 } };
    const onProgress = (share: number) => shares.push(share);
    const search = solveChallenge(endless, { signal: stopping.signal, onProgress });
    // A timer of ours comes between its slices, or this would never end.
    const timer = setInterval(() => shares.length > 2 && stopping.abort(new Error('enough')), 1);
    await assert.rejects(search, /enough/);
    clearInterval(timer);
    assert.equal(shares[0], 0);
    assert.deepEqual(
      shares,
      shares.toSorted((a, b) => a - b),
    );
    await assert.rejects(
      solveChallenge(endless, { signal: AbortSignal.abort(new Error('before')) }),
      /before/,
    );
  });
});
