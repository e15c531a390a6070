import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MISSING_MS, MissingNames } from '#core/missing_names.ts';

const NAMES = 5_000;
/** As long as the head of a request may be that the short way reads. */
const REQUEST_CHARS = 8_000;
const MOST_BYTES_A_NAME = 1_000;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** A name cut from a request, which V8 keeps as a view of the whole text. */
function nameOf(at: number): string {
  const request = Buffer.alloc(REQUEST_CHARS, `${at} `).toString('latin1');
  return request.slice(0, 24);
}

describe('names that are missing', () => {
  it('are believed to be missing for a second', () => {
    let nowMs = 0;
    const names = new MissingNames(() => nowMs);
    names.add('pool');
    nowMs = MISSING_MS - 1;
    assert.equal(names.has('pool'), true);
    nowMs = MISSING_MS;
    assert.equal(names.has('pool'), false);
  });

  it('are those that were asked for to the letter, and no others', () => {
    const names = new MissingNames(() => 0);
    const odd = ['\uFEFFpool', '\uFEFF\uFEFFsite', 'caf\u0065\u0301', ' endpoint'];
    for (const name of odd) names.add(name);
    for (const name of odd) assert.equal(names.has(name), true, JSON.stringify(name));
    for (const name of ['pool', 'site', '\uFEFFsite', 'caf\u00e9', 'endpoint'])
      assert.equal(names.has(name), false, JSON.stringify(name));
  });

  it('keep no request in memory that they were cut from', () => {
    const names = new MissingNames(() => 0);
    const before = heapBytes();
    for (let at = 0; at < NAMES; at++) names.add(nameOf(at));
    const grown = heapBytes() - before;
    assert.ok(names.has(nameOf(NAMES - 1)));
    assert.ok(grown / NAMES < MOST_BYTES_A_NAME, `${Math.round(grown / NAMES)} bytes for each name`);
  });
});
