// The spellings of one address that Twilio may have signed. Its backends add or drop the port and escape the query in more
// than one way, and a plain HMAC over the address as given fails four of the vendor's own eleven examples.

const PARTS = /^([a-z][a-z0-9+.-]*:\/\/)((?:[^/?#]*@)?)(\[[^\]/?#]*\]|[^:/?#]*)((?::[^/?#]*)?)(.*)$/is;
const BODY_HASH = /[?&]bodySHA256=([^&#]*)/;

/** As given first, then as a URL parser writes it, then with the query escaped the old way. */
export function signedUrls(url: string): string[] {
  const normalized = URL.canParse(url) ? new URL(url).href : url;
  const spellings = [url, normalized, withOldQuery(normalized)];
  return [...new Set(spellings.flatMap((spelling) => [withoutPort(spelling), withPort(spelling)]))];
}

/** What Twilio adds to the address of a request with a JSON body. */
export function bodyHashIn(url: string): string | undefined {
  return BODY_HASH.exec(url)?.[1];
}

function withPort(url: string): string {
  const [, scheme = '', user = '', host = '', port, rest = ''] = PARTS.exec(url) ?? [];
  if (port !== '') return url;
  return `${scheme}${user}${host}${scheme.toLowerCase() === 'https://' ? ':443' : ':80'}${rest}`;
}

function withoutPort(url: string): string {
  const [, scheme = '', user = '', host = '', port = '', rest = ''] = PARTS.exec(url) ?? [];
  return port === '' ? url : `${scheme}${user}${host}${rest}`;
}

/** The query read and written again, each name's values together, with what encodeURIComponent leaves bare. */
function withOldQuery(url: string): string {
  const at = url.indexOf('?');
  if (at < 0 || at === url.length - 1) return url;
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  }
  const pairs = [...values].flatMap(([name, list]) =>
    list.map((value) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
  );
  return `${url.slice(0, at)}?${pairs.join('&')}`;
}
