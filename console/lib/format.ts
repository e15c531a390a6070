// Numbers, durations and moments as people read them.

const whole = new Intl.NumberFormat('en');
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const toSecond = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const toMinute = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

/** Where a value is not known. */
export const UNKNOWN = '–';
const COMPACT_FROM = 1_000_000;

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  return value >= COMPACT_FROM ? compact.format(value) : whole.format(Math.round(value));
}

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
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? toSecond.format(at) : `${day.format(at)}, ${toSecond.format(at)}`;
}

export const clock = (atMs: number, hasSeconds: boolean): string =>
  (hasSeconds ? toSecond : toMinute).format(atMs);

export const dayAndClock = (atMs: number): string => `${day.format(atMs)}, ${toMinute.format(atMs)}`;

export const fullMoment = (text: string): string => full.format(new Date(text));

/** A name out of code, as words: dead_letter becomes "dead letter". */
export const words = (name: string): string => name.replaceAll('_', ' ');

export const plural = (amount: number, one: string, many = `${one}s`): string =>
  `${count(amount)} ${amount === 1 ? one : many}`;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;
const UUID_SHOWN = 12;
const OTHERS_SHOWN = 28;

/** As much of an id as tells it from its neighbours: ours begin with the time, which those of one moment share. */
export function shortId(id: string): string {
  if (UUID.test(id)) return `…${id.slice(-UUID_SHOWN)}`;
  return id.length > OTHERS_SHOWN ? `${id.slice(0, OTHERS_SHOWN)}…` : id;
}
