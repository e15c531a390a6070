// Reasons are texts from outside: what a database or a hook had to say about a message.

const MAX_REASON_CHARS = 500;

/** Neither half a character nor a NUL can be stored as text, and one of them would have a whole batch refused. */
const UNSTORABLE = /[\0\ud800-\udfff]/gu;

/** At most 500 characters, as the database counts them, and none that it cannot store. */
export function shorten(text: string): string {
  const start = text.slice(0, 2 * MAX_REASON_CHARS);
  return [...start].slice(0, MAX_REASON_CHARS).join('').replace(UNSTORABLE, '\ufffd');
}
