import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readTraceparent, writeTraceparent } from '#core/traceparent.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const VALID = `00-${TRACE}-${SPAN}-01`;

describe('traceparent', () => {
  it('says which trace, below which span, and whether the caller records it', () => {
    assert.deepEqual(readTraceparent(VALID), { traceId: TRACE, spanId: SPAN, flags: '01' });
    assert.equal(readTraceparent(`00-${TRACE}-${SPAN}-00`)?.flags, '00');
  });

  it('is written as version 00 and read back as the same', () => {
    const read = readTraceparent(VALID);
    assert(read);
    assert.equal(writeTraceparent(read), VALID);
  });

  it('of a later version is read as far as version 00 goes, and flags that we do not know are dropped', () => {
    for (const later of [`01-${TRACE}-${SPAN}-09`, `cc-${TRACE}-${SPAN}-09-what-the-future-holds`])
      assert.deepEqual(readTraceparent(later), { traceId: TRACE, spanId: SPAN, flags: '01' });
    assert.equal(readTraceparent(`00-${TRACE}-${SPAN}-ff`)?.flags, '03');
  });

  const invalid: Record<string, unknown> = {
    'no header': undefined,
    'two headers': [VALID, VALID],
    'two headers in one': `${VALID}, ${VALID}`,
    nothing: '',
    'upper case': VALID.toUpperCase(),
    'the version that is forbidden': `ff-${TRACE}-${SPAN}-01`,
    'a version of one digit': `0-${TRACE}-${SPAN}-01`,
    'a trace of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
    'a span of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
    'a trace that is too short': `00-${TRACE.slice(1)}-${SPAN}-01`,
    'a trace that is not a number': `00-${'z'.repeat(32)}-${SPAN}-01`,
    'no flags': `00-${TRACE}-${SPAN}`,
    'flags of one digit': `00-${TRACE}-${SPAN}-1`,
    'version 00 with more': `${VALID}-more`,
    'a later version with more, and no dash': `01-${TRACE}-${SPAN}-01more`,
    'a line feed at the end': `${VALID}\n`,
    'a space in front': ` ${VALID}`,
    'a number': 1,
  };
  for (const [what, header] of Object.entries(invalid))
    it(`is ignored, as the specification says: ${what}`, () => {
      assert.equal(readTraceparent(header), undefined);
    });
});
