// What to think of a database and its standbys: what an acknowledgement means there, and whether a failover keeps it. Pure.

import type { Ack } from '../db/ack.ts';
import { hostsOf } from '../db/hosts.ts';
import { type Finding, fail, ok, skip, warn } from './finding.ts';
import type { Facts, Look, Standby } from './look.ts';
import type { Patroni } from './patroni.ts';

/** The first version whose leader does not overwrite its successor's key in etcd after a freeze (patroni #2689, #2693). */
const SAFE_ETCD3_VERSION = [3, 0, 3];

/** `ack` is SLUICE_ACK. For a single server that is not meant to have standbys, the only finding is what it acknowledges. */
export function judgeCell(
  title: string,
  { url, facts }: Look,
  ack: Ack | undefined,
  patroni: Patroni | undefined,
): Finding[] {
  if (facts === undefined || facts.is_standby) return [];
  const isCell = hostsOf(url).length > 1 || facts.synchronous_standby_names !== '';
  return [
    judgeAck(title, url, facts, ack),
    ...(isCell ? [judgeStandbys(title, facts)] : []),
    ...(isCell || patroni ? [judgePatroni(title, patroni)] : []),
  ];
}

/** Which acknowledgement is given here, and why. */
function judgeAck(title: string, url: string, facts: Facts, ack: Ack | undefined): Finding {
  const check = `${title}: acknowledged`;
  const waits = facts.synchronous_standby_names !== '';
  const isGiven = ack ? `SLUICE_ACK is ${ack}` : 'SLUICE_ACK is not set';
  if (!waits && (ack === 'quorum' || hostsOf(url).length > 1))
    return fail(
      check,
      `${isGiven}, and the server waits for no standby: a failover loses what it has acknowledged`,
      'set synchronous_standby_names, under Patroni synchronous_mode and synchronous_mode_strict (docs/cells.md)',
    );
  if (!waits) return ok(check, 'local: on the disk of this server; it has no synchronous_standby_names');
  if (ack === 'local')
    return warn(
      check,
      'local, because SLUICE_ACK is local, although the server has standbys to wait for',
      'unset SLUICE_ACK, or accept that a failover loses acknowledged claims, events and calls',
    );
  if (ack === undefined && (facts.synchronous_commit === 'off' || facts.synchronous_commit === 'local'))
    return fail(
      check,
      `synchronous_commit is ${facts.synchronous_commit}: commits do not wait for the standbys`,
      'set synchronous_commit to on, or SLUICE_ACK to quorum',
    );
  if (ack === undefined && facts.synchronous_commit === 'remote_write')
    return warn(
      check,
      'synchronous_commit is remote_write: a power cut of both machines loses what was acknowledged',
      'set synchronous_commit to on, or SLUICE_ACK to quorum',
    );
  const why = ack ? 'SLUICE_ACK is quorum' : 'the server has synchronous_standby_names';
  return ok(check, `quorum: on the disk of a standby too, because ${why}`);
}

function judgeStandbys(title: string, { standbys }: Facts): Finding {
  const check = `${title}: standbys`;
  if (standbys.some(({ state }) => state === null))
    return skip(check, 'this role may not see them: grant it pg_monitor');
  const streaming = standbys.filter(({ state }) => state === 'streaming');
  const inStep = streaming.filter(({ sync_state }) => sync_state === 'sync' || sync_state === 'quorum');
  const found = streaming.length === 0 ? 'none streams' : streaming.map(told).join(', ');
  if (inStep.length === 0)
    return fail(check, `${found}; commits wait for a standby that is not there`, 'start a standby');
  if (streaming.length < 2)
    return warn(check, `${found}; the loss of one more stops all changes`, 'bring the other standby back');
  return ok(check, found);
}

const told = ({ name, sync_state }: Standby): string => `${name} ${sync_state}`;

function judgePatroni(title: string, patroni: Patroni | undefined): Finding {
  const check = `${title}: Patroni`;
  if (patroni === undefined)
    return skip(check, 'its REST API does not answer here: set DB1_PATRONI_URL and DB2_PATRONI_URL');
  const { version, config } = patroni;
  const losing = [
    ...(config.synchronous_mode ? [] : ['synchronous_mode is off: failovers lose what was acknowledged']),
    ...(config.synchronous_mode_strict
      ? []
      : ['synchronous_mode_strict is off: without a standby commits wait for nothing']),
    ...(Number(config.maximum_lag_on_failover ?? 1) > 0 && !config.synchronous_mode
      ? ['maximum_lag_on_failover lets a standby lead that lacks commits']
      : []),
  ];
  const todo = 'change it with `patronictl edit-config` (docs/cells.md has the whole file)';
  if (losing.length > 0) return fail(check, `${version}: ${losing.join('; ')}`, todo);
  if (isBefore(version, SAFE_ETCD3_VERSION))
    return warn(
      check,
      `${version}: with \`etcd3:\` a leader that freezes and wakes loses acknowledged claims`,
      'upgrade to 3.0.3 or newer, or make sure that patroni.yml says `etcd:` (API v2)',
    );
  const slow = [
    ...(config.failsafe_mode ? [] : ['failsafe_mode is off: an outage of etcd stops all changes']),
    ...(config.primary_start_timeout === 0
      ? []
      : ['primary_start_timeout is not 0: a crashed primary is waited for first']),
  ];
  if (slow.length > 0) return warn(check, `${version}: ${slow.join('; ')}`, todo);
  return ok(check, `${version}: synchronous and strict`);
}

function isBefore(version: string, other: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  const at = other.findIndex((part, index) => (parts[index] ?? 0) !== part);
  return at >= 0 && (parts[at] ?? 0) < (other[at] ?? 0);
}
