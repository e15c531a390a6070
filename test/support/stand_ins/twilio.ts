// Stands in for Twilio's lists of calls and messages, as documented at twilio.com/docs (voice/api/call-resource,
// messaging/api/message-resource, usage/twilios-response, api/errors). The package `twilio` reads its answers in a test.

import { type ApiAnswer, type ApiRequest, ApiServer } from '../../../src/stripe_stand_in/api_server.ts';

const PAGE_DEFAULT = 50;
const PAGE_MAX = 1_000;

export interface TwilioCall {
  sid: string;
  account_sid: string;
  status: string;
  from: string;
  to: string;
  direction: string;
  duration: string | null;
  /** Null while it lasts. */
  end: Date | null;
}

export interface TwilioMessage {
  sid: string;
  account_sid: string;
  status: string;
  from: string;
  to: string;
  body: string;
  direction: string;
  /** When its status last changed. */
  changed: Date;
  sent: Date | null;
}

export class TwilioStandIn {
  readonly server = new ApiServer((request) => this.#answer(request));
  /** User and password, as `user:password`, and the accounts they may ask for. */
  readonly keys = new Map<string, readonly string[]>();
  readonly calls = new Map<string, TwilioCall>();
  readonly messages = new Map<string, TwilioMessage>();

  static async start(keys: Record<string, readonly string[]>): Promise<TwilioStandIn> {
    const standIn = new TwilioStandIn();
    for (const [key, accounts] of Object.entries(keys)) standIn.keys.set(key, accounts);
    await standIn.server.listen();
    return standIn;
  }

  get url(): string {
    return this.server.url;
  }

  #answer({ url, headers }: ApiRequest): ApiAnswer {
    const [, account, list] =
      /^\/2010-04-01\/Accounts\/(\w+)\/(Calls|Messages)\.json$/.exec(url.pathname) ?? [];
    if (account === undefined || list === undefined)
      return error(404, 20404, `The requested resource ${url.pathname} was not found`);
    const key = atob(String(headers.authorization ?? '').replace(/^Basic /, ''));
    const accounts = this.keys.get(key);
    if (accounts === undefined) return error(401, 20003, 'Authenticate');
    if (!accounts.includes(account)) return error(403, 20403, 'Forbidden');
    return list === 'Calls'
      ? page(url, 'calls', 'EndTime', this.#ofAccount(this.calls, account), renderCall, ({ end }) => end)
      : page(
          url,
          'messages',
          'DateSent',
          this.#ofAccount(this.messages, account),
          renderMessage,
          ({ sent }) => sent,
        );
  }

  #ofAccount<Item extends { account_sid: string }>(items: Map<string, Item>, account: string): Item[] {
    return [...items.values()].filter(({ account_sid }) => account_sid === account).reverse();
  }
}

/** The filters name days, both included; a page names the next one as a path. */
function page<Item>(
  url: URL,
  name: string,
  dayField: string,
  items: readonly Item[],
  render: (item: Item) => object,
  timeOf: (item: Item) => Date | null,
): ApiAnswer {
  const query = url.searchParams;
  const size = Number(query.get('PageSize') ?? PAGE_DEFAULT);
  const at = Number(query.get('Page') ?? 0);
  if (!(size >= 1 && size <= PAGE_MAX))
    return error(400, 20001, 'Page size must be less than or equal to 1000');
  const from = query.get(`${dayField}>`);
  const to = query.get(`${dayField}<`);
  const matching = items.filter((item) => {
    const day = timeOf(item)?.toISOString().slice(0, 10);
    return (
      (from === null || (day ?? '') >= from.slice(0, 10)) && (to === null || (day ?? 'x') <= to.slice(0, 10))
    );
  });
  const records = matching.slice(at * size, (at + 1) * size);
  const pathOf = (number: number): string => {
    const others = new URLSearchParams(query);
    others.set('Page', String(number));
    if (number > 0) others.set('PageToken', `PA${name}${number}`);
    return `${url.pathname}?${others}`;
  };
  const hasMore = (at + 1) * size < matching.length;
  return {
    status: 200,
    body: {
      [name]: records.map(render),
      end: at * size + records.length - 1,
      first_page_uri: pathOf(0),
      next_page_uri: hasMore ? pathOf(at + 1) : null,
      page: at,
      page_size: size,
      previous_page_uri: at > 0 ? pathOf(at - 1) : null,
      start: at * size,
      uri: pathOf(at),
    },
  };
}

/** RFC 2822, as Twilio writes times. */
const written = (time: Date | null): string | null => time?.toUTCString().replace('GMT', '+0000') ?? null;

function renderCall({ end, ...call }: TwilioCall) {
  const uri = `/2010-04-01/Accounts/${call.account_sid}/Calls/${call.sid}.json`;
  return {
    ...call,
    answered_by: null,
    api_version: '2010-04-01',
    caller_name: null,
    date_created: written(end),
    date_updated: written(end),
    end_time: written(end),
    forwarded_from: null,
    from_formatted: call.from,
    group_sid: null,
    parent_call_sid: null,
    phone_number_sid: null,
    price: '-0.01',
    price_unit: 'USD',
    queue_time: '0',
    start_time: written(end),
    subresource_uris: {},
    to_formatted: call.to,
    trunk_sid: null,
    uri,
  };
}

function renderMessage({ changed, sent, ...message }: TwilioMessage) {
  return {
    ...message,
    api_version: '2010-04-01',
    date_created: written(sent ?? changed),
    date_sent: written(sent),
    date_updated: written(changed),
    error_code: message.status === 'undelivered' ? 30_003 : null,
    error_message: null,
    messaging_service_sid: null,
    num_media: '0',
    num_segments: '1',
    price: null,
    price_unit: 'USD',
    subresource_uris: {},
    uri: `/2010-04-01/Accounts/${message.account_sid}/Messages/${message.sid}.json`,
  };
}

function error(status: number, code: number, message: string): ApiAnswer {
  return { status, body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status } };
}

/** twilio.com/docs/api/errors/20429 */
export const TOO_MANY: ApiAnswer = error(429, 20_429, 'Too Many Requests');
