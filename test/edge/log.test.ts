import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEdgeLog } from '#core/edge/log.ts';
import { createLog } from '../../src/log.ts';

/** As each runtime writes it, and one line of it read back. */
function written(side: 'Node' | 'Edge', fields: Record<string, unknown>): Record<string, unknown> {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = side === 'Node' ? createLog('info', write) : createEdgeLog('info', write);
  log.info('starting', fields);
  assert.equal(lines.length, 1);
  return JSON.parse(lines[0] ?? '');
}

const FIELDS = {
  admin_key: 'hush',
  url: 'postgres://user:hush@host/db',
  cause: new Error('cannot reach postgres://user:hush@host/db', { cause: 'redis://:hush@host' }),
  big: 12n,
};

describe('the log of an Edge Function', () => {
  it('hides what Node’s hides: secrets by their name, and passwords inside addresses', () => {
    const { at: _, ...edge } = written('Edge', FIELDS);
    const { at: __, ...node } = written('Node', FIELDS);
    assert.doesNotMatch(JSON.stringify(edge), /hush/);
    assert.equal(edge.url, 'postgres://user:[hidden]@host/db');
    assert.deepEqual(edge, node);
  });

  it('takes an unknown level for info', () => {
    const lines: string[] = [];
    const log = createEdgeLog('loud', (line) => void lines.push(line));
    log.debug('d');
    log.info('i');
    assert.deepEqual([lines.length, log.debugEnabled], [1, false]);
    assert.doesNotMatch(lines[0] ?? '', /\n/, 'the platform ends the lines');
    assert.equal(createEdgeLog('debug', () => undefined).debugEnabled, true);
    assert.equal(createEdgeLog(undefined, () => undefined).debugEnabled, false);
  });
});
