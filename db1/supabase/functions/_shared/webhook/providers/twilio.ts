import { fromBase64, fromHex, toBase64, utf8 } from '../bytes.ts';
import { formAsObject, readForm } from '../form.ts';
import { sameBytes } from '../hmac.ts';
import type { Provider, ReadEvent, SignedRequest, Verification, VerifyContext } from '../provider.ts';
import { type Described, eventOf, hashOf, isoOfText, type JsonObject, readOne } from '../read.ts';
import { signatureFrom, signatureHeader, verifyClaim } from '../signature.ts';
import { bodyHashIn, signedUrls } from './twilio_url.ts';

const HEADER = 'x-twilio-signature';

/** What a callback is about: the id of a thing and the status it reached. Of several, the first that is whole. */
const SUBJECTS = [
  ['recording', 'RecordingSid', 'RecordingStatus'],
  ['message', 'MessageSid', 'MessageStatus'],
  ['message', 'MessageSid', 'SmsStatus'],
  ['call', 'CallSid', 'CallStatus'],
] as const;

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

function describe(fields: JsonObject): Described {
  const occurredAt = isoOfText(fields.Timestamp);
  for (const [kind, sidName, statusName] of SUBJECTS) {
    const { [sidName]: sid, [statusName]: status } = fields;
    if (typeof sid === 'string' && typeof status === 'string')
      return { id: `${kind}:${sid}:${status}`, type: `${kind}.${status}`, occurredAt };
  }
  return { id: undefined, type: undefined, occurredAt };
}

/** The raw bytes of a form are not signed, its fields are; so the hash is over the fields. */
async function readFields({ body }: SignedRequest, { port }: VerifyContext): Promise<ReadEvent[]> {
  const fields = formAsObject(readForm(body));
  return [eventOf(describe(fields), fields, await hashOf(port, JSON.stringify(fields)))];
}

export const twilio: Provider = {
  name: 'twilio',
  // An auth token is 32 hex digits.
  minSecretChars: 32,
  takesForms: true,
  signsUrl: true,
  verify,
  // What was signed decides how the body is read; the content type was not.
  read: (request, context) =>
    bodyHashIn(request.url) === undefined
      ? readFields(request, context)
      : readOne(request, context, { describe }),
  async sign(request, secret, { port }) {
    const mac = await port.hmac('SHA-1', utf8(secret), utf8(request.url + signedFields(request)));
    return { [HEADER]: toBase64(mac) };
  },
};
