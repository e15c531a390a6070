// How things are written for people.

const numbers = new Intl.NumberFormat();
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export const number = (value: number): string => numbers.format(value);
export const seatsText = (count: number): string => `${number(count)} ${count === 1 ? 'seat' : 'seats'}`;
/** It is told from numbers of messages, some of which may be gone: "about". */
export const aheadText = (ahead: number): string =>
  ahead === 0 ? 'You are next' : `About ${number(ahead)} ahead of you`;
export const moment = (at: number | string): string => moments.format(new Date(at));

/** `demo_concert_2026` is "Demo Concert 2026". */
export function nameOf(pool: string): string {
  return pool
    .split(/[_.\-~:@\s]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}

/** Where Stripe counts a currency in other units than ISO 4217 does: https://docs.stripe.com/currencies#zero-decimal */
const STRIPES_DIGITS: Readonly<Record<string, number>> = { isk: 2, ugx: 2, mga: 0 };

/** Minor units, as the provider counts them. */
export function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
  const digits = STRIPES_DIGITS[currency] ?? format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

export interface TimeLeft {
  readonly days: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
}

/** Counts down to 1 and is then over: zero is never shown for a second in which one cannot buy. */
export function timeLeft(ms: number): TimeLeft {
  const total = Math.max(0, Math.ceil(ms / 1_000));
  return {
    days: Math.floor(total / 86_400),
    hours: Math.floor(total / 3_600) % 24,
    minutes: Math.floor(total / 60) % 60,
    seconds: total % 60,
  };
}

const two = (value: number): string => String(value).padStart(2, '0');

/** For the title of the tab. */
export function shortTime({ days, hours, minutes, seconds }: TimeLeft): string {
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${two(minutes)}:${two(seconds)}`;
}

/** A number that stands for a text, the same every time. */
export function seedOf(text: string): number {
  let seed = 2_166_136_261;
  for (const character of text) seed = Math.imul(seed ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return seed >>> 0;
}

/** The colour of a pool. */
export const hueOf = (pool: string): number => seedOf(pool) % 360;
