import type { JsonValue } from '../../json.ts';
import { fromBase64, fromHex, toBase64, utf8 } from '../bytes.ts';
import { formAsObject, readForm } from '../form.ts';
import { sameBytes } from '../hmac.ts';
import { type ListItem, readList } from '../list.ts';
import type { Provider, ReadEvent, SignedRequest, Verification, VerifyContext } from '../provider.ts';
import {
  type Described,
  decode,
  eventOf,
  hashOf,
  isObject,
  isoOfText,
  isSaneName,
  type JsonObject,
  parseMarked,
  readOne,
} from '../read.ts';
import { signatureFrom, signatureHeader, verifyClaim } from '../signature.ts';
import { bodyHashIn, signedUrls } from './twilio_url.ts';

const HEADER = 'x-twilio-signature';
/** 128 bits: no two requests meet by chance. */
const DIGEST_CHARS = 32;

/** A thing and the status it reached, which is told once. Of several, the first that is whole. */
const STATUSES = [
  ['transcription', 'TranscriptionSid', 'TranscriptionStatus'],
  ['recording', 'RecordingSid', 'RecordingStatus'],
  ['message', 'MessageSid', 'MessageStatus'],
  ['message', 'MessageSid', 'SmsStatus'],
  ['fax', 'FaxSid', 'FaxStatus'],
] as const;

/** A thing and what happened to it, which may happen again. */
const HAPPENINGS = [
  ['transcription', 'TranscriptionSid', 'TranscriptionEvent'],
  ['conference', 'ConferenceSid', 'StatusCallbackEvent'],
  ['composition', 'CompositionSid', 'StatusCallbackEvent'],
  ['room', 'RoomSid', 'StatusCallbackEvent'],
  ['stream', 'StreamSid', 'StreamEvent'],
  ['siprec', 'SiprecSid', 'SiprecEvent'],
] as const;

/** What Twilio asks after a verb of TwiML: the field that only such a request has. */
const VERBS = [
  ['dial', 'DialCallStatus'],
  ['record', 'RecordingUrl'],
  ['gather', 'SpeechResult'],
  ['gather', 'Digits'],
  ['enqueue', 'QueueResult'],
] as const;
/** Fields that only callbacks have: a request for TwiML lacks them. */
const CALLBACK_FIELDS = ['CallbackSource', 'SequenceNumber', 'Timestamp'];
const ENDED_CALL = /^(completed|busy|no-answer|canceled|failed)$/;

const EMPTY_TWIML = '<?xml version="1.0" encoding="UTF-8"?><Response/>';
const WANTS_TWIML = /^(voice\.|message\.received$)/;

/**
 * What follows the address in the signed text. Twilio puts no mark between names and values, so `a=bc` and `ab=c` sign
 * alike; nothing a receiver does can tell them apart.
 */
function signedFields({ url, body }: Pick<SignedRequest, 'url' | 'body'>): string {
  if (bodyHashIn(url) !== undefined) return '';
  return [...readForm(body)].flatMap(([name, values]) => values.map((value) => name + value)).join('');
}

async function verify(
  request: SignedRequest,
  secrets: readonly string[],
  context: VerifyContext,
): Promise<Verification> {
  const verification = await verifyClaim(
    () => {
      const signature = signatureFrom(signatureHeader(request, HEADER), fromBase64, 'SHA-1');
      const fields = signedFields(request);
      return {
        hash: 'SHA-1',
        signatures: [signature],
        messages: signedUrls(request.url).map((url) => utf8(url + fields)),
      };
    },
    secrets,
    utf8,
    context,
  );
  const bodyHash = bodyHashIn(request.url);
  if (!verification.ok || bodyHash === undefined) return verification;
  const claimed = fromHex(bodyHash);
  if (claimed !== undefined && sameBytes(claimed, await context.port.sha256(request.body)))
    return verification;
  return {
    ok: false,
    reason: 'body_hash_mismatch',
    detail: 'the address is signed, but its bodySHA256 is not the hash of this body',
  };
}

/** Nearly all that Twilio sends has no id of its own: it is made of signed fields, or of all of them (`digest`). */
function describe(fields: JsonObject, digest: string): Described {
  const occurredAt = isoOfText(fields.Timestamp);
  const { SequenceNumber, SequenceId, EventType, StatusCallbackEvent } = fields;
  const reached = find(STATUSES, fields);
  if (reached !== undefined) return { ...once(reached), occurredAt };
  const happened = find(HAPPENINGS, fields);
  if (happened !== undefined) {
    const { id, type } = once(happened);
    return { id: `${id}:${SequenceNumber ?? SequenceId ?? digest}`, type, occurredAt };
  }
  const call = find([['call', 'CallSid', 'CallStatus']], fields);
  if (call !== undefined) {
    const verb = VERBS.find(([, name]) => name in fields)?.[0];
    const hasEnded = ENDED_CALL.test(call.status) && verb === undefined;
    if (hasEnded || CALLBACK_FIELDS.some((name) => name in fields)) return { ...once(call), occurredAt };
    return { id: `voice:${call.sid}:${digest}`, type: `voice.${verb ?? 'request'}`, occurredAt };
  }
  const type = [EventType, StatusCallbackEvent].find(isSaneName) ?? 'request';
  return { id: `request:${digest}`, type, occurredAt };
}

interface Subject {
  readonly kind: string;
  readonly sid: string;
  readonly status: string;
}

const once = ({ kind, sid, status }: Subject) => ({
  id: `${kind}:${sid}:${status}`,
  type: `${kind}.${status}`,
});

/** The first whose id and status are both there. */
function find(
  subjects: readonly (readonly [kind: string, sidName: string, statusName: string])[],
  fields: JsonObject,
): Subject | undefined {
  for (const [kind, sidName, statusName] of subjects) {
    const { [sidName]: sid, [statusName]: status } = fields;
    if (isSaneName(sid) && isSaneName(status)) return { kind, sid, status };
  }
  return undefined;
}

/** The raw bytes of a form are not signed, its fields and the address's query are; so the hashes are over those. */
async function readFields({ body, url }: SignedRequest, { port }: VerifyContext): Promise<ReadEvent[]> {
  const fields = formAsObject(readForm(body));
  const text = JSON.stringify(fields);
  const digest = (await hashOf(port, `${queryOf(url)}\n${text}`)).slice(0, DIGEST_CHARS);
  return [eventOf(describe(fields, digest), fields, await hashOf(port, text))];
}

function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}

/** One callback, or a list of events (Event Streams), each with an id of its own. */
async function readJson(request: SignedRequest, context: VerifyContext): Promise<ReadEvent[]> {
  const list = parseMarked(decode(request.body));
  if (!Array.isArray(list) || list.length === 0)
    return readOne(request, context, {
      describe: (body, hash) => describe(body, hash.slice(0, DIGEST_CHARS)),
    });
  return readList(itemsOf(list), request, context);
}

function* itemsOf(list: readonly JsonValue[]): Generator<ListItem> {
  for (const item of list) {
    const { id, type, time } = isObject(item) ? item : {};
    const described = { id, type, occurredAt: isoOfText(time) };
    yield { describe: () => described, content: item, payload: isObject(item) ? item : { item } };
  }
}

export const twilio: Provider = {
  name: 'twilio',
  // An auth token is 32 hex digits.
  minSecretChars: 32,
  takesForms: true,
  signsUrl: true,
  verify,
  // The signed address decides how the body is read; the content type is not signed.
  read: (request, context) =>
    bodyHashIn(request.url) === undefined ? readFields(request, context) : readJson(request, context),
  // Voice and messaging ask what to do; a status callback does not care what it gets.
  reply: ([event]) =>
    event !== undefined && WANTS_TWIML.test(event.eventType)
      ? { contentType: 'text/xml; charset=utf-8', empty: EMPTY_TWIML }
      : undefined,
  async sign(request, secret, { port }) {
    const mac = await port.hmac('SHA-1', utf8(secret), utf8(request.url + signedFields(request)));
    return { [HEADER]: toBase64(mac) };
  },
};
