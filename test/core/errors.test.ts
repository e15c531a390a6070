import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ERROR_KINDS, HttpError, isOutage, toHttpError } from '#core/errors.ts';
import { verdictOf } from '#core/webhook/verdict.ts';

function coded(code: string): Error {
  return Object.assign(new Error('select secret from hidden'), { code });
}

const CODES: [string, string, number, boolean][] = [
  ['SL001', 'invalid_input', 422, false],
  ['SL002', 'unknown_pool', 404, false],
  ['SL003', 'closed', 409, false],
  ['SL004', 'limit', 409, false],
  ['SL005', 'auth_required', 401, false],
  ['SL006', 'not_yours', 403, false],
  ['SL007', 'request_conflict', 409, false],
  ['SL008', 'unknown_claim', 404, false],
  ['SL009', 'in_flight', 409, true],
  ['SL010', 'already_committed', 409, false],
  ['SL011', 'busy', 503, true],
  ['SL012', 'claim_ended', 409, false],
  ['SL013', 'dead_letter', 409, false],
  ['SL020', 'ticket_conflict', 409, false],
  ['SL030', 'permanent_failure', 422, false],
  ['SL031', 'unknown_endpoint', 404, false],
  ['SL032', 'endpoint_exists', 409, false],
  ['SL033', 'lost_lease', 409, false],
  ['08006', 'database_unavailable', 503, true],
  ['57P01', 'database_unavailable', 503, true],
  ['57P03', 'database_unavailable', 503, true],
  ['53300', 'database_unavailable', 503, true],
  ['28P01', 'database_unavailable', 503, true],
  ['28000', 'database_unavailable', 503, true],
  ['3D000', 'database_unavailable', 503, true],
  ['25006', 'database_unavailable', 503, true],
  ['ECONNREFUSED', 'database_unavailable', 503, true],
  ['ECONNRESET', 'database_unavailable', 503, true],
  ['57014', 'busy', 503, true],
  ['40P01', 'busy', 503, true],
  ['42P01', 'internal', 500, false],
  ['58030', 'internal', 500, false],
  ['SL999', 'internal', 500, false],
];

describe('the error table', () => {
  for (const [from, code, http, retryable] of CODES) {
    it(`turns ${from} into ${code}, ${http}${retryable ? ', worth a retry' : ''}`, () => {
      const { kind } = toHttpError(coded(from));
      assert.deepEqual([kind.code, kind.http, kind.retryable], [code, http, retryable]);
    });
  }

  it('looks into a connection refused on several addresses', () => {
    const error = toHttpError(new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')]));
    assert.equal(error.kind.code, 'database_unavailable');
  });

  it('takes a session that was refused or ended for an outage, whatever its code', () => {
    for (const severity of ['FATAL', 'PANIC'])
      assert.equal(
        toHttpError(Object.assign(coded('XX000'), { severity })).kind.code,
        'database_unavailable',
      );
    assert.equal(toHttpError(Object.assign(coded('XX000'), { severity: 'ERROR' })).kind.code, 'internal');
  });

  it('takes anything that can be thrown, and shows none of its text', () => {
    for (const thrown of [coded('42601'), new TypeError('secret'), 'secret', null, undefined, { code: 7 }]) {
      const error = toHttpError(thrown);
      assert.equal(error.kind.code, 'internal');
      assert.doesNotMatch(`${error.message} ${error.hint}`, /secret/);
    }
  });

  it('leaves a refusal of our own as it is', () => {
    const own = new HttpError('limit', 'a hint');
    assert.equal(toHttpError(own), own);
  });

  it('answers 5xx only where a retry can help, but for what is broken here', () => {
    for (const kind of Object.values(ERROR_KINDS)) {
      if (kind.http >= 500 && kind.code !== 'internal') assert.ok(kind.retryable, kind.code);
      assert.ok(kind.message.length > 0 && kind.hint.length > 0, kind.code);
    }
  });
});

describe('an outage', () => {
  const OUTAGES = '08006 25006 28000 28P01 3D000 53100 53300 57P01 57P03 58030 58P01'.split(' ');

  it('is what a database says that can serve nobody, and the same for messages and for events', () => {
    for (const code of OUTAGES) {
      assert.equal(isOutage(coded(code)), true, code);
      assert.equal(verdictOf(coded(code)), 'outage', code);
    }
    const refused = Object.assign(coded('XX000'), { severity: 'FATAL' });
    assert.deepEqual([isOutage(refused), verdictOf(refused)], [true, 'outage']);
  });

  it('is no login that a statement speaks of', () => {
    for (const code of ['28000', '3D000'])
      assert.equal(isOutage(Object.assign(coded(code), { severity: 'ERROR' })), false, code);
  });

  it('is neither a lock, nor a timeout, nor what is missing, nor a socket that may be anybody’s', () => {
    for (const code of ['40001', '55P03', '57014', '42501', '42883', 'XX000', 'P0001', 'ECONNREFUSED', ''])
      assert.equal(isOutage(coded(code)), false, code);
    for (const thrown of [undefined, null, '08006', { code: 8006 }]) assert.equal(isOutage(thrown), false);
  });
});
