import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BodyBuffer } from '#core/body_buffer.ts';

const MEGABYTE = 1024 * 1024;

describe('a body that arrives in chunks', () => {
  it('is the chunk itself where there is one', () => {
    const buffer = new BodyBuffer(10);
    const chunk = Buffer.from('abc');
    assert.equal(buffer.add(chunk), true);
    assert.equal(buffer.bytes().buffer, chunk.buffer);
    assert.deepEqual([Buffer.from(buffer.bytes()).toString(), buffer.grown], ['abc', 0]);
  });

  it('takes room as often as it doubles, however many chunks there are', () => {
    const body = Buffer.from(Array.from({ length: 50_000 }, (_, at) => at % 251));
    const buffer = new BodyBuffer(MEGABYTE);
    for (let at = 0; at < body.length; at++) assert.ok(buffer.add(body.subarray(at, at + 1)));
    assert.deepEqual(Buffer.from(buffer.bytes()), body);
    assert.ok(buffer.grown <= 7, `room was made ${buffer.grown} times`);
  });

  it('never takes more room than the limit', () => {
    const buffer = new BodyBuffer(1_500);
    for (let at = 0; at < 1_500; at++) assert.ok(buffer.add(Buffer.from('x')));
    assert.equal(buffer.bytes().buffer.byteLength, 1_500);
    assert.equal(buffer.add(Buffer.from('x')), false);
    assert.equal(buffer.bytes().length, 1_500);
  });

  it('writes into no chunk that it was given', () => {
    const slab = Buffer.from('abcdef');
    const buffer = new BodyBuffer(MEGABYTE);
    buffer.add(slab.subarray(0, 2));
    buffer.add(Buffer.from('XY'));
    assert.equal(Buffer.from(buffer.bytes()).toString(), 'abXY');
    assert.equal(slab.toString(), 'abcdef');
  });

  it('is empty where nothing came', () => {
    assert.equal(new BodyBuffer(1).bytes().length, 0);
  });
});
