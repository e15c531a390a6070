// Many cells behind the functions of one: operators' routes call as if there were one intake. How the cells' answers become one
// is said here, function by function. With one cell its answers are passed on as they are.

import type { CallFunction } from '#core/call_function.ts';
import type { AuditRow } from '#core/console/audit.ts';
import type { PoolView } from '#core/console/pools.ts';
import { type IntakeLook, issuesOf } from '#core/console/sample.ts';
import { inTime } from '#core/deadline.ts';
import { HttpError } from '#core/errors.ts';
import { isUnavailable } from '#core/failure.ts';
import type { Total } from '#core/search/lists.ts';
import { CELL_ANSWERS_WITHIN_MS } from '../samples/sampler.ts';
import { cellAway } from './away.ts';
import type { Answered, Fleet, FleetCell } from './fleet.ts';
import { leaveOut } from './left_out.ts';

export interface CallableCell extends FleetCell {
  /** Functions of schema public. */
  readonly call: CallFunction;
}

/** As cell_join gives them out. */
const IDS_PER_CELL = 2 ** 40;

type Args = Record<string, unknown>;
type Row = Record<string, unknown>;
type Way<Cell> = (fleet: Fleet<Cell & CallableCell>, name: string, args: Args) => Promise<Row[]>;

export function oneIntake<Cell extends CallableCell>(fleet: Fleet<Cell>): CallFunction {
  const sampled: Sampled = { looks: new Map(), asked: new Set() };
  const ways: Readonly<Record<string, Way<Cell>>> = {
    pool_create: createPool,
    pool_change: onPool,
    pool_list: (all, name, args) =>
      args.p_pool_id == null ? listPools(all, name, args) : onPool(all, name, args),
    pool_details: onPool,
    set_pool_details: onPool,
    get_claim: onClaim,
    release_claim_as_operator: onClaim,
    claim_timeline: (all, name, args) => fromAll(all, name, args),
    claim_search: (all, name, args) => newestById(all, name, args, 'claim_id'),
    order_list: (all, name, args) => newestById(all, name, args, 'order_id'),
    claim_total: totalOf,
    pool_total: totalOf,
    order_total: totalOf,
    dead_letter_total: totalOf,
    audit_total: totalOf,
    user_audit: (all, name, args) => fromAll(all, name, args),
    list_dead_letters: async (all, name, args) =>
      first(args, await fromAll(all, name, args), (a, b) => Number(a.msg_id) - Number(b.msg_id)),
    order_details: orderDetails,
    order_audit: (all, name, args) => fromAll(all, name, args),
    audit_page: (all, name, args) => newestOf(all, name, args),
    sessions_ended: (all, name, args) => fromAll(all, name, args),
    session_end: (all, name, args) => toAll(all, name, args),
    inbox_list: async (all, name, args) =>
      first(args, await fromAll(all, name, args), (a, b) => Number(a.msg_id) - Number(b.msg_id)),
    inbox_replay: byNumber,
    inbox_discard: byNumber,
    take_sample: (all, name, args) => sampleOf(all, name, args, sampled),
  };
  return async <Answer>(name: string, args: Args): Promise<Answer[]> => {
    const way = ways[name];
    // With one cell too: then each test of a route shows that its function is in the list.
    if (way === undefined) throw new Error(`it is not said how several cells answer ${name}`);
    if (fleet.isOne && way !== onPool && way !== onClaim) {
      const { p_cell, ...rest } = args;
      return (p_cell === undefined ? fleet.only : fleet.named(String(p_cell))).call<Answer>(name, rest);
    }
    return (await way(fleet, name, args)) as Answer[];
  };
}

/** The answer that is made of it says which cells it lacks. Throws where none answers. */
async function gather<Cell extends CallableCell, Answer>(
  fleet: Fleet<Cell>,
  ask: (cell: Cell) => Promise<Answer>,
  cells = fleet.cells,
): Promise<Answered<Cell, Answer>> {
  const answered = await fleet.all(ask, cells);
  if (answered.answers.length === 0) throw cellAway(answered.away);
  leaveOut(answered.away);
  return answered;
}

/** Rows say which cell they are of. */
async function fromAll<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const { answers } = await gather(fleet, (cell) => cell.call<Row>(name, args));
  return answers.flatMap(([cell, rows]) => rows.map((row) => ({ ...row, cell: cell.name })));
}

/** Those cells that are away are told when it is asked for again: it throws. */
async function toAll<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const { answers, away } = await fleet.all((cell) => cell.call<Row>(name, args));
  if (away.length > 0) throw cellAway(away);
  return answers.flatMap(([, rows]) => rows);
}

/**
 * The ids of an inbox begin with the number of its cell. An id whose number no cell has is told by the first cell, unless a cell is
 * away, which may have it.
 */
async function byNumber<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const numbered = new Map([...fleet.here].map(([cell, { number }]) => [number, cell]));
  const ids = args.p_msg_ids as readonly number[];
  const nameOf = (id: number) => numbered.get(Math.floor(id / IDS_PER_CELL));
  if (fleet.away.length > 0 && ids.some((id) => nameOf(id) === undefined)) throw cellAway(fleet.away);
  const rows: Row[] = [];
  for (const cell of fleet.cells) {
    const mine = ids.filter((id) => (nameOf(id) ?? fleet.only.name) === cell.name);
    if (mine.length > 0) rows.push(...(await cell.call<Row>(name, { ...args, p_msg_ids: mine })));
  }
  return rows;
}

/** Its rows, newest first, on one page for all cells: one by its number needs those of all pages before it. */
async function newestById<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
  id: string,
): Promise<Row[]> {
  const offset = Number(args.p_offset ?? 0);
  const upTo = { ...args, p_offset: 0, p_limit: offset + Number(args.p_limit) };
  const rows = await fromAll(fleet, name, upTo);
  return first(upTo, rows, (a, b) => (String(a[id]) < String(b[id]) ? 1 : -1)).slice(offset);
}

/** Together; without the rows of a cell that is away it is the least that there can be. */
async function totalOf<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const { p_cell, ...filters } = args;
  const cells = p_cell === undefined ? fleet.cells : [fleet.named(String(p_cell))];
  const { answers, away } = await gather(fleet, (cell) => cell.call<Total>(name, filters), cells);
  const totals = answers.flatMap(([, rows]) => rows);
  const isAny = (how: Total['how']) => totals.some((one) => one.how === how);
  const least = isAny('about') ? 'about' : isAny('at_least') || away.length > 0 ? 'at_least' : 'exact';
  return [{ total: totals.reduce((sum, { total }) => sum + Number(total), 0), how: least }];
}

function first(args: Args, rows: Row[], order: (a: Row, b: Row) => number): Row[] {
  return rows.sort(order).slice(0, Number(args.p_limit));
}

/** Where there are several, a row says of which it is. */
function withCell<Cell extends CallableCell>(fleet: Fleet<Cell>, row: Row, { name }: Cell): Row {
  return fleet.isOne ? row : { ...row, cell: name };
}

async function onPool<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const rows = await fleet.onPool(
    String(args.p_pool_id),
    async (cell) => (await cell.call<Row>(name, args)).map((row) => withCell(fleet, row, cell)),
    (found) => found.length === 0,
  );
  return rows ?? [];
}

async function onClaim<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const row = await fleet.onClaim(String(args.p_claim_id), async (cell) => {
    const [found] = await cell.call<Row>(name, args);
    return found && withCell(fleet, found, cell);
  });
  return row === undefined ? [] : [row];
}

/** Of the cell that has the order; the others answer null. */
async function orderDetails<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const row = await fleet.onClaim(String(args.p_order_id), async (cell) => {
    const [found] = await cell.call<{ order_details: { order: Row } | null }>(name, args);
    const details = found?.order_details;
    return details
      ? { order_details: { ...details, order: { ...details.order, cell: cell.name } } }
      : undefined;
  });
  return row === undefined ? [] : [row];
}

/**
 * In the cell that is named, or the one with the fewest pools, where that takes new ones; a pool that is there already is answered by its own cell. The other
 * cells are told, also where the answer is lost with the cell: asked again, the pool is not made a second time elsewhere.
 */
async function createPool<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  { p_cell, ...args }: Args,
): Promise<Row[]> {
  const named = p_cell === undefined ? undefined : fleet.named(String(p_cell));
  const poolId = String(args.p_pool_id);
  const { lives, meantFor } = await fleet.knownCellOf(poolId);
  if (lives !== undefined && named !== undefined && lives !== named)
    throw new HttpError('pool_elsewhere', `It lives in cell ${lives.name}; \`sluice pools move\` moves it.`);
  const cell = lives ?? (await takingPools(fleet, named ?? meantFor));
  const rows = await cell.call<Row>(name, args).catch(async (error: unknown) => {
    if (isUnavailable(error)) await fleet.tellPlace(poolId, cell);
    throw error;
  });
  await fleet.tellPlace(poolId, cell);
  return rows.map((row) => ({ ...row, cell: cell.name }));
}

/** The cell that is wanted, or the one with the fewest pools. Throws where it is away or takes no new pools. */
async function takingPools<Cell extends CallableCell>(fleet: Fleet<Cell>, wanted?: Cell): Promise<Cell> {
  await fleet.lookAgain();
  if (wanted !== undefined) fleet.answering(wanted.name);
  const open = [...fleet.here.values()].filter(({ is_draining }) => !is_draining);
  const [best] = open
    .filter(({ name }) => wanted === undefined || name === wanted.name)
    .sort((a, b) => a.pools - b.pools || a.number - b.number);
  if (best !== undefined) return fleet.named(best.name);
  throw new HttpError(
    'cell_unavailable',
    wanted === undefined
      ? 'No cell takes new pools: each is away or draining.'
      : `Cell ${wanted.name} takes no new pools: it is draining.`,
  );
}

/** Cell by cell, in their order: the pool that a page begins after says which cell it was in. */
async function listPools<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
): Promise<Row[]> {
  const [limit, offset] = [Number(args.p_limit), Number(args.p_offset ?? 0)];
  const upTo = { ...args, p_limit: offset + limit, p_offset: 0 };
  const after = String(args.p_after ?? '');
  const from = after === '' ? undefined : (await fleet.cellOf(after))?.name;
  const begin = from === undefined ? 0 : fleet.cells.findIndex((cell) => cell.name === from);
  const rows: Row[] = [];
  const { answers } = await gather(
    fleet,
    (cell) => cell.call<PoolView>(name, { ...upTo, p_after: cell.name === from ? after : '' }),
    fleet.cells.slice(begin),
  );
  for (const [cell, pools] of answers) rows.push(...pools.map((pool) => ({ ...pool, cell: cell.name })));
  return rows.slice(offset, offset + limit);
}

/** Each cell counts its own rows, so a page before a number is asked for with the cell that gave it. */
async function newestOf<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  { p_cell, ...args }: Args,
): Promise<Row[]> {
  if (p_cell !== undefined) {
    const cell = fleet.named(String(p_cell));
    return (await cell.call<Row>(name, args)).map((row) => ({ ...row, cell: cell.name }));
  }
  const offset = Number(args.p_offset ?? 0);
  const upTo = { ...args, p_offset: 0, p_limit: offset + Number(args.p_limit) };
  const rows = (await fromAll(fleet, name, upTo)) as unknown as (AuditRow & Row)[];
  return first(upTo, rows, (a, b) => (String(a.at) < String(b.at) ? 1 : -1)).slice(offset);
}

interface Sampled {
  /** What each cell gave last, by its name. */
  readonly looks: Map<string, IntakeLook>;
  /** Cells that have not answered yet: the question stays open, and is not asked twice. */
  readonly asked: Set<string>;
}

async function takeSample(
  { name: cell, call }: CallableCell,
  name: string,
  args: Args,
  { looks, asked }: Sampled,
): Promise<void> {
  if (asked.has(cell)) throw cellAway([cell]);
  asked.add(cell);
  const taken = call<{ take_sample: IntakeLook | null }>(name, args).finally(() => asked.delete(cell));
  const [row] = await inTime(CELL_ANSWERS_WITHIN_MS, taken, () => cellAway([cell]));
  if (row?.take_sample) looks.set(cell, row.take_sample);
}

/** A cell that is away counts as it was seen last, so that sums do not jump; `cells` says which it is. */
async function sampleOf<Cell extends CallableCell>(
  fleet: Fleet<Cell>,
  name: string,
  args: Args,
  sampled: Sampled,
): Promise<Row[]> {
  const { answers, away } = await fleet.all((cell) => takeSample(cell, name, args, sampled));
  if (answers.length === 0) throw cellAway(away);
  const { looks } = sampled;
  if (looks.size === 0) return [{ take_sample: null }];
  const all = [...looks.values()];
  const sum = (read: (look: IntakeLook) => number) => all.reduce((total, look) => total + read(look), 0);
  const oldestOf = (read: (look: IntakeLook) => number | null): number | null => {
    const ages = all.flatMap((look) => read(look) ?? []);
    return ages.length === 0 ? null : Math.max(...ages);
  };
  const look: IntakeLook = {
    sampled_ms: Math.max(...all.map(({ sampled_ms = 0 }) => sampled_ms)),
    hold_oldest_sec: oldestOf(({ hold_oldest_sec = null }) => hold_oldest_sec),
    enqueued: sum(({ enqueued }) => enqueued),
    queue_depth: sum(({ queue_depth }) => queue_depth),
    oldest_msg_sec: oldestOf(({ oldest_msg_sec }) => oldest_msg_sec),
    dlq_depth: sum(({ dlq_depth }) => dlq_depth),
    bridge_workers: sum(({ bridge_workers }) => bridge_workers),
    inbox: {
      accepted: sum(({ inbox }) => inbox.accepted),
      waiting: sum(({ inbox }) => inbox.waiting),
      oldest_sec: oldestOf(({ inbox }) => inbox.oldest_sec),
      dead_letters: sum(({ inbox }) => inbox.dead_letters),
      doors_age_sec: oldestOf(({ inbox }) => inbox.doors_age_sec),
    },
    orders: {
      held: sum(({ orders }) => orders.held),
      paying: sum(({ orders }) => orders.paying),
      past_bound: sum(({ orders }) => orders.past_bound),
      past_bound_sec: oldestOf(({ orders }) => orders.past_bound_sec),
      to_close: sum(({ orders }) => orders.to_close),
    },
    pools: [...looks].flatMap(([cell, { pools }]) => pools.map((pool) => ({ ...pool, cell }))),
    troubles: all.flatMap(({ troubles = [] }) => troubles),
    issues: issuesOf(all.map(({ issues }) => issues)) ?? { open: 0, newest: [] },
    cells: fleet.cells.map((cell) => ({ name: cell.name, ok: !away.includes(cell.name) })),
  };
  return [{ take_sample: look }];
}
