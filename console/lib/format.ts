// Numbers, durations and moments as people read them.

import { type Zone, zone } from './zone.ts';

const whole = new Intl.NumberFormat('en');
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

function formatsIn(timeZone: string | undefined) {
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { ...options, ...(timeZone !== undefined && { timeZone }) });
  return {
    toSecond: format({ timeStyle: 'medium' }),
    toMinute: format({ timeStyle: 'short' }),
    day: format({ day: 'numeric', month: 'short' }),
    date: format({ dateStyle: 'short' }),
    full: format({ dateStyle: 'medium', timeStyle: 'long' }),
    name: format({ timeZoneName: 'short' }),
  };
}

const FORMATS: Readonly<Record<Zone, ReturnType<typeof formatsIn>>> = {
  local: formatsIn(undefined),
  UTC: formatsIn('UTC'),
};
const formats = () => FORMATS[zone.get()];

/** Where a value is not known. */
export const UNKNOWN = '–';
const COMPACT_FROM = 1_000_000;

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  return value >= COMPACT_FROM ? compact.format(value) : whole.format(Math.round(value));
}

/** Every digit: what is counted is told as it was counted. */
export const every = (value: number): string => whole.format(value);

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  return value >= 10 ? count(value) : tenths.format(value);
}

export const axis = (value: number): string => compact.format(value);

export function duration(sec: number | null | undefined): string {
  if (sec === null || sec === undefined) return UNKNOWN;
  if (sec < 1) return sec <= 0 ? '0 s' : '< 1 s';
  if (sec < 60) return `${Math.round(sec)} s`;
  if (sec < 3_600) return `${Math.floor(sec / 60)} min ${Math.round(sec % 60)} s`;
  if (sec < 86_400) return `${Math.floor(sec / 3_600)} h ${Math.floor((sec % 3_600) / 60)} min`;
  return `${Math.floor(sec / 86_400)} d ${Math.floor((sec % 86_400) / 3_600)} h`;
}

export function moment(text: string): string {
  const at = new Date(text);
  const { date, day, toSecond } = formats();
  const isToday = date.format(at) === date.format(new Date());
  return isToday ? toSecond.format(at) : `${day.format(at)}, ${toSecond.format(at)}`;
}

/** What the zone is called at that moment: summer has another name. */
export function zoneOf(at: Date): string {
  const part = formats()
    .name.formatToParts(at)
    .find(({ type }) => type === 'timeZoneName');
  return part?.value ?? '';
}

export const clock = (atMs: number, hasSeconds: boolean): string =>
  (hasSeconds ? formats().toSecond : formats().toMinute).format(atMs);

export function dayAndClock(atMs: number): string {
  const { day, toMinute } = formats();
  return `${day.format(atMs)}, ${toMinute.format(atMs)}`;
}

export const fullMoment = (text: string): string => formats().full.format(new Date(text));

/** A name out of code, as words: dead_letter becomes "dead letter". */
export const words = (name: string): string => name.replaceAll('_', ' ');

export const plural = (amount: number, one: string, many = `${one}s`): string =>
  `${count(amount)} ${amount === 1 ? one : many}`;
