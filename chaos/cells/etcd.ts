// Three members of etcd, which decide who leads a cell.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { waitUntilGone } from '../../src/stack/processes.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { freePorts, launch, signal, until } from './servers.ts';

const START_MS = 60_000;
const GONE_MS = 10_000;
const ANSWER_MS = 500;

export class EtcdMember {
  readonly name: string;
  readonly port: number;
  readonly #args: readonly string[];
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  constructor(name: string, port: number, args: readonly string[], logFile: string) {
    this.name = name;
    this.port = port;
    this.#args = args;
    this.#logFile = logFile;
  }

  start(): void {
    this.#child = launch('/usr/bin/etcd', this.#args, this.#logFile);
  }

  /** 200 only with a leader and a majority. */
  async isHealthy(): Promise<boolean> {
    const url = `http://${LOOPBACK}:${this.port}/health`;
    return (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })).ok;
  }

  freeze(): void {
    signal(this.#child?.pid, 'SIGSTOP');
  }

  thaw(): void {
    signal(this.#child?.pid, 'SIGCONT');
  }

  async kill(): Promise<void> {
    this.killNow();
    if (this.#child?.pid) await waitUntilGone(this.#child.pid, GONE_MS);
  }

  killNow(): void {
    signal(this.#child?.pid, 'SIGKILL');
  }
}

export async function startEtcd(dir: string): Promise<readonly EtcdMember[]> {
  const ports = await freePorts(6);
  const places = [0, 1, 2].map((index) => ({
    name: `e${index + 1}`,
    client: ports[2 * index] ?? 0,
    peer: ports[2 * index + 1] ?? 0,
  }));
  const cluster = places.map(({ name, peer }) => `${name}=http://${LOOPBACK}:${peer}`).join(',');
  const members = places.map(({ name, client, peer }) => {
    const data = join(dir, `etcd-${name}`);
    mkdirSync(data, { mode: 0o700 });
    giveToServer(data);
    const [clientUrl, peerUrl] = [`http://${LOOPBACK}:${client}`, `http://${LOOPBACK}:${peer}`];
    const args = [
      ...['--name', name, '--data-dir', data],
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--initial-cluster', cluster, '--initial-cluster-state', 'new', '--initial-cluster-token', dir],
      ...['--heartbeat-interval', '100', '--election-timeout', '1000', '--auto-compaction-retention', '1'],
      ...['--enable-v2=true', '--logger', 'zap', '--log-level', 'warn'],
    ];
    return new EtcdMember(name, client, args, `${data}.log`);
  });
  for (const member of members) member.start();
  await until(
    'etcd has a leader',
    async () => (await Promise.all(members.map((member) => member.isHealthy()))).every(Boolean),
    START_MS,
  ).catch((error: unknown) => {
    for (const member of members) member.killNow();
    throw error;
  });
  return members;
}
