import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog } from '../../src/log.ts';

function lines(level: 'debug' | 'info' | 'warn' | 'error' | 'silent') {
  const written: string[] = [];
  return { written, log: createLog(level, (line) => written.push(line)) };
}

describe('the log', () => {
  it('writes one JSON object per line', () => {
    const { written, log } = lines('info');
    log.warn('slow', { ms: 12, text: 'two\nlines' });
    assert.equal(written.length, 1);
    assert.match(written[0] ?? '', /^[^\n]+\n$/);
    const { at, ...rest } = JSON.parse(written[0] ?? '');
    assert.ok(!Number.isNaN(Date.parse(at)));
    assert.deepEqual(rest, { level: 'warn', message: 'slow', ms: 12, text: 'two\nlines' });
  });

  it('is silent below its level, and says whether debug is worth putting together', () => {
    const { written, log } = lines('warn');
    log.debug('d');
    log.info('i');
    log.warn('w');
    log.error('e');
    assert.equal(written.length, 2);
    assert.equal(log.debugEnabled, false);
    assert.equal(lines('debug').log.debugEnabled, true);
  });

  it('writes an error with its code and its cause', () => {
    const { written, log } = lines('info');
    log.error('failed', {
      cause: Object.assign(new Error('outer', { cause: new Error('inner') }), { code: '42P01' }),
    });
    const { cause } = JSON.parse(written[0] ?? '');
    assert.deepEqual([cause.error, cause.code, cause.cause.error], ['outer', '42P01', 'inner']);
  });

  const away = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const stackOf = (level: 'debug' | 'info', method: 'debug' | 'warn' | 'error', cause: Error): unknown => {
    const { written, log } = lines(level);
    log[method]('failed', { cause });
    return JSON.parse(written[0] ?? '').cause.stack;
  };

  it('writes no stack of a warning, nor of what caused it: the message says it', () => {
    const { written, log } = lines('info');
    log.warn('request refused', { cause: new Error('Stripe is away', { cause: away() }) });
    const { cause } = JSON.parse(written[0] ?? '');
    assert.deepEqual(cause, {
      error: 'Stripe is away',
      cause: { error: 'connect ECONNREFUSED', code: 'ECONNREFUSED' },
    });
  });

  it('writes no stack of a database that is away, at level error either', () => {
    const shutDown = Object.assign(new Error('terminating connection'), { code: '57P01' });
    assert.equal(stackOf('info', 'error', shutDown), undefined);
    assert.equal(stackOf('info', 'error', away()), undefined);
  });

  it('writes the stack of every other failure, of a fault of the code, and of all at debug', () => {
    const fault = new TypeError('undefined is not a function');
    assert.match(String(stackOf('info', 'error', new Error('unexpected'))), /log\.test\.ts/);
    assert.match(String(stackOf('info', 'warn', fault)), /log\.test\.ts/);
    assert.match(String(stackOf('debug', 'warn', away())), /log\.test\.ts/);
    const unfetched = new TypeError('fetch failed', { cause: away() });
    assert.equal(stackOf('info', 'warn', unfetched), undefined, 'fetch throws a TypeError for an outage too');
  });

  it('never writes a secret, by its name or inside an address', () => {
    const { written, log } = lines('info');
    log.info('starting', {
      admin_key: 'hush',
      nested: { jwtSecret: 'hush', Authorization: 'Bearer hush', password: 'hush', token: 'hush' },
      url: 'postgres://user:hush@host/db',
      cause: new Error('cannot reach postgres://user:hush@host/db'),
    });
    assert.doesNotMatch(written.join(''), /hush/);
    assert.match(written.join(''), /postgres:\/\/user:\[hidden\]@host\/db/);
  });
});
