// A request of Twilio's in the form that nearly all of them have.

import type { Documented } from './request.ts';

export const ACCOUNT = { AccountSid: 'AC00000000000000000000000000000001', ApiVersion: '2010-04-01' };

type Fields = Record<string, string>;

export const form = (name: string, fields: Fields, type: string, query = ''): Documented => ({
  name,
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  query,
  types: [type],
});
