import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ERROR_KINDS, HttpError } from '#core/errors.ts';
import {
  blameOf,
  codeOfAnswer,
  isSaidByDatabase,
  isUnavailable,
  mayBeOneMembers,
  toHttpError,
} from '#core/failure.ts';
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
  ['SL021', 'claim_ended', 409, false],
  ['SL030', 'permanent_failure', 422, false],
  ['SL031', 'unknown_endpoint', 404, false],
  ['SL032', 'endpoint_exists', 409, false],
  ['SL014', 'pool_exists', 409, false],
  ['SL015', 'wrong_isolation', 500, false],
  ['SL033', 'lost_lease', 409, false],
  ['SL034', 'processing_failed', 500, true],
  ['SL099', 'internal', 500, false],
  ['08006', 'database_unavailable', 503, true],
  ['57P01', 'database_unavailable', 503, true],
  ['57P03', 'database_unavailable', 503, true],
  ['53300', 'database_unavailable', 503, true],
  ['28P01', 'database_unavailable', 503, true],
  ['28000', 'database_unavailable', 503, true],
  ['3D000', 'database_unavailable', 503, true],
  ['25006', 'database_unavailable', 503, true],
  ['40003', 'database_unavailable', 503, true],
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
      if (kind.http >= 500 && !['internal', 'wrong_isolation'].includes(kind.code))
        assert.ok(kind.retryable, kind.code);
      assert.ok(kind.message.length > 0 && kind.hint.length > 0, kind.code);
    }
  });
});

describe('an outage', () => {
  const OUTAGES = '08006 25006 28000 28P01 3D000 53100 53300 57P01 57P03 58030 58P01'.split(' ');
  const isOutage = (error: unknown): boolean => ['database', 'disk'].includes(blameOf(error));

  it('is what a database says that can serve no query, and the same for messages and for events', () => {
    for (const code of OUTAGES) {
      assert.equal(isOutage(coded(code)), true, code);
      assert.equal(verdictOf(coded(code)), 'outage', code);
    }
    const refused = Object.assign(coded('XX000'), { severity: 'FATAL' });
    assert.deepEqual([isOutage(refused), verdictOf(refused)], [true, 'outage']);
  });

  it('is not an ERROR of a statement with the code of a refused login', () => {
    for (const code of ['28000', '3D000'])
      assert.equal(isOutage(Object.assign(coded(code), { severity: 'ERROR' })), false, code);
  });

  it('is neither a lock, nor a timeout, nor what is missing, nor an error of a socket', () => {
    for (const code of ['40001', '55P03', '57014', '42501', '42883', 'XX000', 'P0001', 'ECONNREFUSED', ''])
      assert.equal(isOutage(coded(code)), false, code);
    for (const thrown of [undefined, null, '08006', { code: 8006 }]) assert.equal(isOutage(thrown), false);
  });
});

const BLAMES: Readonly<Record<string, string>> = {
  database: '08001 53100 57P02 25006 40003 28000',
  disk: '58030 58P01',
  unreached: 'ECONNREFUSED ENOTFOUND EPIPE',
  unanswered: 'SELF_SIGNED_CERT_IN_CHAIN ERR_TLS_CERT_ALTNAME_INVALID EPROTO 080061 2500',
  collision: '40001 40P01 55P03',
  slow: '57014',
  missing: '3F000 42883 42P01',
  unserved: 'PGRST106 PGRST202',
  denied: '42501',
  broken: '42601 XX000 XX001 PGRST301 PGRSTX00 SL099',
  data: '22001 22P05',
  size: '54000 54001',
  constraint: '23505 23514',
  unread: 'PGRST100 PGRST102',
  refused: 'SL001 SL020 SL999',
  permanent: 'SL030',
  later: 'SL034',
  other: '0A000 25001 25P02 55006 57000 P0001 55000',
};

describe('the blame', () => {
  for (const [blame, codes] of Object.entries(BLAMES))
    it(`is ${blame} for ${codes.replaceAll(' ', ', ')}`, () => {
      for (const code of codes.split(' ')) assert.equal(blameOf(coded(code)), blame, code);
    });

  it('is broken for a bug in our own code, and unanswered for any other error without a known code', () => {
    assert.deepEqual([new TypeError('x'), new RangeError('x')].map(blameOf), ['broken', 'broken']);
    assert.deepEqual(
      [new Error('x'), 'x', null, undefined, { code: 7 }, {}].map(blameOf),
      Array(6).fill('unanswered'),
    );
    assert.equal(blameOf(Object.assign(new TypeError('x'), { code: 'ERR_INVALID_URL' })), 'unanswered');
  });

  it('tells an answer of a database from the words of a runtime', () => {
    for (const code of ['40001', 'PGRST202', 'SL001'])
      assert.equal(isSaidByDatabase(coded(code)), true, code);
    for (const code of ['EPIPE', 'ECONNREFUSED', '', '4000', '400011', 'xPGRST'])
      assert.equal(isSaidByDatabase(coded(code)), false, code);
  });

  it('says when the database cannot be asked, and when one member may have spoiled a set', () => {
    assert.deepEqual(
      ['08006', 'EPIPE', '40001', '22001'].map((code) => isUnavailable(coded(code))),
      [true, true, false, false],
    );
    assert.deepEqual(
      ['08006', 'SL001', '22001', 'XX000', '40001', '40P01', '55P03', '57014'].map((code) =>
        mayBeOneMembers(coded(code)),
      ),
      [false, false, true, true, true, true, true, true],
    );
  });
});

describe('an answer of PostgREST', () => {
  for (const [code, status, expected] of [
    ['SL001', 500, 'SL001'],
    ['40001', 503, '40001'],
    ['PGRST202', 404, 'PGRST202'],
    ['PGRST301', 401, '08004'],
    ['PGRST000', 503, '08006'],
    ['PGRST000', 502, '08006'],
    ['PGRST000', 501, 'PGRST000'],
    ['', 429, '08006'],
    ['', 413, '54000'],
    ['', 403, '08004'],
    ['', 404, '08006'],
    ['xPGRST1', 400, '08006'],
  ] as const)
    it(`with the code "${code}" and the status ${status} counts as ${expected}`, () => {
      assert.equal(codeOfAnswer(code, status), expected);
    });
});
