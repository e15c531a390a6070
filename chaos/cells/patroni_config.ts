// patroni.yml of one node, as docs/cells.md has it.

import { LOOPBACK } from '../../src/stack/ports.ts';
import { POSTGRES_BIN } from './servers.ts';

export const CELL_PASSWORD = 'secret';

/** What all members share. A leader that does not answer for `ttl` seconds is replaced. */
export const SHARED_SETTINGS: Readonly<Record<string, number | boolean>> = {
  ttl: 6,
  loop_wait: 1,
  retry_timeout: 2,
  maximum_lag_on_failover: 0,
  primary_start_timeout: 0,
  primary_stop_timeout: 5,
  synchronous_mode: true,
  synchronous_mode_strict: true,
  synchronous_node_count: 1,
  failsafe_mode: true,
};

const PARAMETERS: Readonly<Record<string, string>> = {
  wal_level: 'logical',
  wal_log_hints: 'on',
  max_wal_size: '1GB',
  wal_keep_size: '128MB',
  max_connections: '200',
  synchronous_commit: 'on',
  wal_receiver_timeout: '5s',
  wal_sender_timeout: '5s',
  wal_retrieve_retry_interval: '200ms',
  hot_standby_feedback: 'on',
};

export interface NodeConfig {
  readonly scope: string;
  readonly name: string;
  readonly restPort: number;
  readonly port: number;
  readonly data: string;
  readonly etcdPorts: readonly number[];
  readonly settings: Readonly<Record<string, number | boolean>>;
  readonly parameters: Readonly<Record<string, string>>;
}

/** JSON is YAML: what is quoted there needs no second set of rules. */
export function patroniConfig(node: NodeConfig): string {
  const listen = (port: number) => `${LOOPBACK}:${port}`;
  const user = (username: string) => ({ username, password: CELL_PASSWORD });
  return JSON.stringify(
    {
      scope: node.scope,
      name: node.name,
      restapi: { listen: listen(node.restPort), connect_address: listen(node.restPort) },
      // API v2: with etcd3 Patroni 3.0.2 loses what was acknowledged. The proxies are ours: they cut a node from etcd.
      etcd: { hosts: node.etcdPorts.map(listen), use_proxies: true },
      bootstrap: {
        dcs: {
          ...node.settings,
          postgresql: {
            use_pg_rewind: true,
            use_slots: true,
            remove_data_directory_on_rewind_failure: true,
            remove_data_directory_on_diverged_timelines: true,
            parameters: { ...PARAMETERS, ...node.parameters },
          },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
        pg_hba: [
          `host all all ${LOOPBACK}/32 scram-sha-256`,
          `host replication rep ${LOOPBACK}/32 scram-sha-256`,
        ],
      },
      postgresql: {
        listen: listen(node.port),
        connect_address: listen(node.port),
        data_dir: node.data,
        bin_dir: POSTGRES_BIN,
        pgpass: `${node.data}.pgpass`,
        create_replica_methods: ['basebackup'],
        basebackup: [{ checkpoint: 'fast' }],
        authentication: { superuser: user('postgres'), replication: user('rep'), rewind: user('rew') },
        parameters: { unix_socket_directories: '', shared_buffers: '64MB', logging_collector: 'off' },
      },
    },
    null,
    2,
  );
}
