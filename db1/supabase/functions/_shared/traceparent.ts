// The header traceparent of W3C Trace Context (https://www.w3.org/TR/trace-context/): which trace a request belongs to, and
// below which of its spans.

export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of the caller's span, 16 hexadecimal digits. */
  readonly spanId: string;
  /** Two hexadecimal digits; the last bit says that the caller records the trace. */
  readonly flags: string;
}

const FORM = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
/** The version that is forbidden, and version 00 with more than it has. */
const WRONG_VERSION = /^(?:ff|00-.{52}.)/;
const ZEROS = /^0+$/;
/** Sampled, and random trace id: the bits that version 00 knows. A bit that we do not know is not sent on. */
const KNOWN_FLAGS = 0b11;

/**
 * Undefined for a header that is missing, sent twice or not valid: the specification says to go on as if there were none. Of a
 * later version only what version 00 has is read.
 */
export function readTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string' || WRONG_VERSION.test(header)) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = FORM.exec(header) ?? [];
  if (flags === '' || ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  const known = Number.parseInt(flags, 16) & KNOWN_FLAGS;
  return { traceId, spanId, flags: known.toString(16).padStart(2, '0') };
}

export function writeTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags}`;
}
