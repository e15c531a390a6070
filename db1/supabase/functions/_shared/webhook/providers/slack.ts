import type { JsonValue } from '../../json.ts';
import { fromHex, prepend, toHex, utf8 } from '../bytes.ts';
import { formAsObject, readForm } from '../form.ts';
import type { Provider, ReadEvent, SignedRequest, VerifyContext } from '../provider.ts';
import {
  type Described,
  eventOf,
  hashOf,
  isObject,
  isoOfSeconds,
  type JsonObject,
  parseMarked,
  readOne,
} from '../read.ts';
import { signatureFrom, signatureHeader, timedClaim, verifyClaim, withoutPrefix } from '../signature.ts';

const SIGNATURE = 'x-slack-signature';
const TIMESTAMP = 'x-slack-request-timestamp';
const OPENING_BRACE = 0x7b;
/** Slack's own are about 200 bytes; larger bodies are events, and not parsed twice. */
const MAX_CHALLENGE_BYTES = 1024;

function describe({ event_id, event, type, event_time }: JsonObject): Described {
  return {
    id: event_id,
    type: isObject(event) ? event.type : type,
    occurredAt: isoOfSeconds(event_time),
  };
}

/** A slash command, or an interaction whose JSON is the field `payload`. Both carry a trigger id, and it is signed. */
async function readCommand({ body }: SignedRequest, { port }: VerifyContext): Promise<ReadEvent[]> {
  const fields = formAsObject(readForm(body));
  const content = parseObject(fields.payload) ?? fields;
  const { trigger_id: id, type, command } = content;
  const described = { id, type: command === undefined ? type : 'command', occurredAt: null };
  return [eventOf(described, content, await hashOf(port, body))];
}

function parseObject(text: JsonValue | undefined): JsonObject | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value = parseMarked(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const slack: Provider = {
  name: 'slack',
  takesForms: true,
  verify: (request, secrets, context) =>
    verifyClaim(
      () => {
        const signature = withoutPrefix(signatureHeader(request, SIGNATURE), 'v0=');
        const timestamp = signatureHeader(request, TIMESTAMP);
        const given = signatureFrom(signature, fromHex);
        return timedClaim([given], `v0:${timestamp}:`, request.body, timestamp);
      },
      secrets,
      utf8,
      context,
    ),
  // The content type is not signed; the first byte is.
  read: (request, context) =>
    request.body[0] === OPENING_BRACE
      ? readOne(request, context, { describe })
      : readCommand(request, context),
  challenge({ body }) {
    if (body[0] !== OPENING_BRACE || body.length > MAX_CHALLENGE_BYTES) return undefined;
    const asked = parseObject(new TextDecoder().decode(body));
    return asked?.type === 'url_verification' && typeof asked.challenge === 'string'
      ? asked.challenge
      : undefined;
  },
  async sign({ body }, secret, { port, nowSec }) {
    const mac = await port.hmac('SHA-256', utf8(secret), prepend(`v0:${nowSec}:`, body));
    return { [SIGNATURE]: `v0=${toHex(mac)}`, [TIMESTAMP]: String(nowSec) };
  },
};
