import type { Provider } from '../provider.ts';
import { type JsonObject, readOne } from '../read.ts';
import { signsWholeBody } from './whole_body.ts';

/** The delivery's id and the event's name come in headers that nobody signs, so the body's hash is a key as well. */
export const github: Provider = {
  name: 'github',
  ...signsWholeBody('x-hub-signature-256', 'hex', 'sha256='),
  read: (request, context) => {
    const { 'x-github-delivery': id, 'x-github-event': event } = request.headers;
    return readOne(request, context, {
      describe: (body) => ({ id, type: typeOf(event, body), occurredAt: null }),
      keyOnBody: true,
    });
  },
};

/** `issues.opened`: the name from the header, and what happened, where the body says it. */
function typeOf(event: string | string[] | undefined, { action }: JsonObject): string | string[] | undefined {
  return typeof event === 'string' && typeof action === 'string' ? `${event}.${action}` : event;
}
